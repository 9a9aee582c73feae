package golden

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.{col, timestamp_seconds}
import org.apache.spark.sql.streaming.{GroupState, GroupStateTimeout, OutputMode}

case class RunningCount(count: Long)

/** The queries of Spark's tests of flatMapGroupsWithState, which Python does not have. */
object Queries {
  def latest(values: DataFrame): DataFrame = {
    val spark = values.sparkSession
    import spark.implicits._
    val newest = (key: String, rows: Iterator[(String, Long)], state: GroupState[Long]) =>
      if (state.hasTimedOut) {
        state.remove()
        Iterator((key, -1))
      } else {
        val time = math.max(rows.map(_._2).max, state.getOption.getOrElse(0L))
        state.update(time)
        state.setTimeoutTimestamp((time + 5) * 1000)
        Iterator((key, time.toInt))
      }
    values
      .select(col("a").as("key"), timestamp_seconds(col("b")).as("eventTime"))
      .withWatermark("eventTime", "10 seconds")
      .as[(String, Long)]
      .groupByKey(_._1)
      .flatMapGroupsWithState(OutputMode.Update, GroupStateTimeout.EventTimeTimeout)(newest)
      .toDF("key", "value")
  }

  private val counted = (key: (String, String), rows: Iterator[(String, String, Long)], state: GroupState[RunningCount]) =>
    if (state.hasTimedOut) {
      state.remove()
      Iterator((key, "-1"))
    } else {
      val count = state.getOption.map(_.count).getOrElse(0L) + rows.size
      state.update(RunningCount(count))
      state.setTimeoutDuration("1 day") // Spark's tests, whose clock they drive, say ten seconds.
      Iterator((key, count.toString))
    }

  def counts(values: DataFrame): DataFrame = counts(values, initial = false)

  def countsWithInitialState(values: DataFrame): DataFrame = counts(values, initial = true)

  private def counts(values: DataFrame, initial: Boolean): DataFrame = {
    val spark = values.sparkSession
    import spark.implicits._
    val groups = values
      .toDF("key1", "key2", "time")
      .select(col("key1"), col("key2"), timestamp_seconds(col("time")).as("timestamp"))
      .withWatermark("timestamp", "10 second")
      .as[(String, String, Long)]
      .repartition(col("key1"))
      .groupByKey(row => (row._1, row._2))
    val timeout = GroupStateTimeout.ProcessingTimeTimeout
    val given = Seq(("c", "c", RunningCount(2))).toDS().repartition(col("_2"))
    val found =
      if (initial) {
        val groupsOfBefore = given.groupByKey(row => (row._1, row._2)).mapValues(_._3)
        groups.flatMapGroupsWithState(OutputMode.Update, timeout, groupsOfBefore)(counted)
      } else groups.flatMapGroupsWithState(OutputMode.Update, timeout)(counted)
    found.select(col("_1._1").as("key1"), col("_1._2").as("key2"), col("_2").as("cnt"))
  }
}
