package org.apache.spark.sql.streaming

import org.apache.spark.sql.{Encoder, Encoders}
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.internal.SQLConf

object ChangesOfAProcessorsStateAreLimitedSuite {
  case class First(count: Long)
  case class Second(count: Long, note: Option[String])
  case class Third(count: Long, note: Option[String], more: Option[String])

  class Counts[S](of: Long => S, countOf: S => Long)(implicit states: Encoder[S])
    extends StatefulProcessor[String, String, (String, Long)] {
    @transient private var count: ValueState[S] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
      count = getHandle.getValueState[S]("count", states, TTLConfig.NONE)

    override def handleInputRows(
        key: String,
        rows: Iterator[String],
        timerValues: TimerValues): Iterator[(String, Long)] = {
      count.update(of((if (count.exists()) countOf(count.get()) else 0L) + rows.size))
      Iterator.single((key, countOf(count.get())))
    }
  }
}

class ChangesOfAProcessorsStateAreLimitedSuite extends StreamTest {
  import ChangesOfAProcessorsStateAreLimitedSuite._
  import testImplicits._

  test("the schema of the state of transformWithState may change as often as the threshold says") {
    withSQLConf(
      SQLConf.STATE_STORE_PROVIDER_CLASS.key -> classOf[RocksDBStateStoreProvider].getName,
      "spark.sql.streaming.stateStore.encodingFormat" -> "avro",
      "spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold" -> "2") {
      withTempDir { checkpoint =>
        val input = MemoryStream[String](Encoders.STRING, spark)

        def emits(counts: StatefulProcessor[String, String, (String, Long)], total: Long): Unit =
          testStream(
            input.toDS().groupByKey(identity).transformWithState(counts, TimeMode.None(), OutputMode.Update()),
            OutputMode.Update())(
            StartStream(checkpointLocation = checkpoint.getCanonicalPath),
            AddData(input, "a"),
            CheckNewAnswer(("a", total)),
            StopStream)

        emits(new Counts[First](First(_), _.count), 1L)
        emits(new Counts[Second](Second(_, None), _.count), 2L)
        emits(new Counts[Third](Third(_, None, None), _.count), 3L)
      }
    }
  }
}
