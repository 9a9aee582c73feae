package golden

import org.apache.spark.sql.{DataFrame, Encoders}
import org.apache.spark.sql.streaming._

class RunningCounts extends StatefulProcessor[String, String, (String, String)] {
  @transient private var count: ValueState[Long] = _

  override def init(mode: OutputMode, time: TimeMode): Unit =
    count = getHandle.getValueState[Long]("countState", Encoders.scalaLong, TTLConfig.NONE)

  override def handleInputRows(key: String, rows: Iterator[String], timers: TimerValues): Iterator[(String, String)] = {
    count.update((if (count.exists()) count.get() else 0L) + rows.size)
    Iterator((key, count.get().toString))
  }
}

/** A query with the operator, the key and the state variable that the metadata and the schema of checkpoints 4.0.0-tws name. */
object Processed {
  def counts(values: DataFrame): DataFrame = {
    val spark = values.sparkSession
    import spark.implicits._
    values.as[String].groupByKey(value => value).transformWithState(new RunningCounts, TimeMode.None(), OutputMode.Update()).toDF("key", "count")
  }
}
