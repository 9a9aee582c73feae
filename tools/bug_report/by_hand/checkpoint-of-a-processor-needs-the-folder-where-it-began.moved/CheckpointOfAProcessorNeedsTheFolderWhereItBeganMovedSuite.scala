package org.apache.spark.sql.streaming

import java.io.File

import org.apache.commons.io.FileUtils

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
import org.apache.spark.sql.internal.SQLConf

object CheckpointOfAProcessorNeedsTheFolderWhereItBeganMovedSuite {
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

class CheckpointOfAProcessorNeedsTheFolderWhereItBeganMovedSuite extends StreamTest {
  import CheckpointOfAProcessorNeedsTheFolderWhereItBeganMovedSuite._
  import testImplicits._

  test("a query with transformWithState continues when its checkpoint has been moved to another folder") {
    withSQLConf(SQLConf.STATE_STORE_PROVIDER_CLASS.key -> classOf[RocksDBStateStoreProvider].getName) {
      withTempDir { folder =>
        val (began, moved) = (new File(folder, "began"), new File(folder, "moved"))
        val input = MemoryStream[String](Encoders.STRING, spark)
        val counts = input.toDS().groupByKey(identity)
          .transformWithState(new Counts, TimeMode.None(), OutputMode.Update())
        testStream(counts, OutputMode.Update())(
          StartStream(checkpointLocation = began.getCanonicalPath),
          AddData(input, "a"),
          CheckNewAnswer(("a", 1L)),
          StopStream)
        FileUtils.moveDirectory(began, moved)
        testStream(counts, OutputMode.Update())(
          StartStream(checkpointLocation = moved.getCanonicalPath),
          AddData(input, "a"),
          CheckNewAnswer(("a", 2L)),
          StopStream)
      }
    }
  }
}
