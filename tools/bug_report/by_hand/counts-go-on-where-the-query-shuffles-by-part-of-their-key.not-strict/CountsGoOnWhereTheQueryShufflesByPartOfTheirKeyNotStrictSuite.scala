package org.apache.spark.sql.streaming

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.functions.count
import org.apache.spark.sql.internal.SQLConf

class CountsGoOnWhereTheQueryShufflesByPartOfTheirKeyNotStrictSuite extends StreamTest {
  import testImplicits._

  test("without strict distribution, a query that repartitions by part of a key finds its state with other shuffle partitions") {
    withSQLConf(SQLConf.STATEFUL_OPERATOR_USE_STRICT_DISTRIBUTION.key -> "false") {
      withTempDir { checkpoint =>
        val input = MemoryStream[(String, Int)](
          Encoders.tuple(Encoders.STRING, Encoders.scalaInt), spark)
        val rows = for (id <- Seq("a", "b"); n <- Seq(1, 2)) yield (id, n)

        // The rows, each with its count, after the session has got this number of shuffle partitions.
        def counted(partitions: Int, expected: Long): Unit = {
          withSQLConf(SQLConf.SHUFFLE_PARTITIONS.key -> partitions.toString) {
            val expectedRows = rows.map { case (id, n) => (id, n, expected) }
            val counts = input.toDF().toDF("id", "n").repartition($"id").groupBy("id", "n").agg(count("*"))
            testStream(counts, OutputMode.Update())(
              StartStream(checkpointLocation = checkpoint.getCanonicalPath),
              AddData(input, rows: _*),
              CheckNewAnswer(expectedRows.head, expectedRows.tail: _*),
              StopStream)
          }
        }

        counted(partitions = 2, expected = 1L)
        counted(partitions = 3, expected = 2L)
      }
    }
  }
}
