"""What runs in production: plain PySpark, with a checkpoint. python plain_pyspark.py FOLDER"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "src"))

from acme_jobs.clicked import build  # noqa: E402

folder = Path(sys.argv[1]).resolve()
session = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
spark = session.config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC").getOrCreate()
schemas = {
    "orders": "order_time TIMESTAMP, who STRING, amount INT",
    "clicks": "click_time TIMESTAMP, who STRING, page STRING",
}
for name in schemas:
    (folder / name).mkdir(parents=True)
    (folder / name / "day.csv").write_text((ROOT / "samples" / f"{name}.csv").read_text())
streams = [spark.readStream.schema(ddl).option("header", True).csv(str(folder / name)) for name, ddl in schemas.items()]
rows = build(spark, *streams).writeStream.format("parquet").option("path", str(folder / "table"))
rows.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
