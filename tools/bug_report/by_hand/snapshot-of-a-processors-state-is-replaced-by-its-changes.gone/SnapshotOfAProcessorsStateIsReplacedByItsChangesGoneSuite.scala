package org.apache.spark.sql.streaming

import scala.jdk.CollectionConverters._

import org.apache.commons.io.FileUtils

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.{RocksDBStateStoreProvider, StateStore}
import org.apache.spark.sql.internal.SQLConf

object SnapshotOfAProcessorsStateIsReplacedByItsChangesGoneSuite {
  class Counts extends StatefulProcessor[String, String, (String, Long)] {
    @transient private var count: ValueState[Long] = _

    override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
      count = getHandle.getValueState[Long]("count", Encoders.scalaLong, TTLConfig.NONE)

    override def handleInputRows(
        key: String,
        rows: Iterator[String],
        timerValues: TimerValues): Iterator[(String, Long)] = {
      count.update((if (count.exists()) count.get() else 0L) + rows.size)
      Iterator.single((key, count.get()))
    }
  }
}

class SnapshotOfAProcessorsStateIsReplacedByItsChangesGoneSuite extends StreamTest {
  import SnapshotOfAProcessorsStateIsReplacedByItsChangesGoneSuite._
  import testImplicits._

  test("the state of transformWithState is read from its changelog when its first snapshot is lost") {
    withSQLConf(
      SQLConf.STATE_STORE_PROVIDER_CLASS.key -> classOf[RocksDBStateStoreProvider].getName,
      "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled" -> "true") {
      withTempDir { checkpoint =>
        val input = MemoryStream[String](Encoders.STRING, spark)
        val counts = input.toDS().groupByKey(identity)
          .transformWithState(new Counts, TimeMode.None(), OutputMode.Update())
        testStream(counts, OutputMode.Update())(
          StartStream(checkpointLocation = checkpoint.getCanonicalPath),
          AddData(input, "a"),
          CheckNewAnswer(("a", 1L)),
          AddData(input, "a"),
          CheckNewAnswer(("a", 2L)),
          StopStream)
        StateStore.stop()
        val snapshots = FileUtils.listFiles(checkpoint, Array("zip"), true).asScala
        assert(snapshots.nonEmpty)
        snapshots.foreach(_.delete())
        testStream(counts, OutputMode.Update())(
          StartStream(checkpointLocation = checkpoint.getCanonicalPath),
          AddData(input, "a"),
          CheckNewAnswer(("a", 3L)),
          StopStream)
      }
    }
  }
}
