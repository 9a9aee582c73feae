package org.apache.spark.sql.streaming

import java.io.File
import java.nio.file.Files

import org.apache.spark.sql.internal.SQLConf

class NamesOfSourcesDoNotBeginInFormat2Suite extends StreamTest {
  test("a file source does not get a name on a checkpoint without names, though its offset log has format 2") {
    withSQLConf(SQLConf.STREAMING_OFFSET_LOG_FORMAT_VERSION.key -> "2") {
      withTempDir { folder =>
        val in = new File(folder, "in")
        in.mkdir()

        // Reads the files, one of which is new.
        def run(number: Int, reader: DataStreamReader): Unit = {
          Files.writeString(new File(in, s"$number.txt").toPath, number.toString)
          val query = reader.text(in.getCanonicalPath).writeStream.format("noop")
            .option("checkpointLocation", new File(folder, "checkpoint").getCanonicalPath).start()
          try query.processAllAvailable() finally query.stop()
        }

        run(1, spark.readStream)
        withSQLConf(SQLConf.ENABLE_STREAMING_SOURCE_EVOLUTION.key -> "true") {
          val refused = intercept[StreamingQueryException](run(2, spark.readStream.name("rows")))
          assert(refused.getMessage.contains("CANNOT_ENABLE_ON_EXISTING_CHECKPOINT"))
        }
      }
    }
  }
}
