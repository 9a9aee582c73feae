"""Rows on their way into the engine as records: which partition, which timestamp, and what the offsets say was read."""

import pytest

from harness.driver.arrivals import FileArrivals, MixedArrivals
from harness.driver.files import LocalFiles
from harness.driver.request import StreamRequest, TopicRequest
from harness.driver.topics import TopicArrivals, TopicRecord


class Recorded:
    """A broker that keeps what it is told."""

    servers = "localhost:9092"

    def __init__(self):
        self.topics = {}
        self.sent = []

    def create(self, topic, partitions):
        self.topics[topic] = partitions

    def send(self, records):
        self.sent.append(records)

    def replace(self, topic, partitions):
        self.sent = [[record for record in sent if record.topic != topic] for sent in self.sent]
        self.topics[topic] = partitions

    def delete(self, topics):
        for topic in topics:
            del self.topics[topic]


def stream(partitions=1, timestamp=None):
    return StreamRequest("at TIMESTAMP, v INT", 1, TopicRequest(partitions, timestamp))


@pytest.fixture
def broker():
    return Recorded()


def test_a_row_is_a_record_in_its_partition(broker):
    arrivals = TopicArrivals("/cases/1", {"a": stream(3)}, broker)
    (topic,) = broker.topics
    assert broker.topics == {topic: 3}
    arrivals.place(arrivals.stage([{"a": [[{"v": 1}, {"v": 2}], [], [{"v": 3}]]}]))
    values = [(0, '{"v": 1}'), (0, '{"v": 2}'), (2, '{"v": 3}')]
    assert broker.sent == [[TopicRecord(topic, partition, None, value) for partition, value in values]]


def test_topics_that_are_made_anew_have_what_has_arrived(broker, tmp_path):
    files = FileArrivals(str(tmp_path), {"b": StreamRequest("v INT", 1)}, LocalFiles())
    arrivals = MixedArrivals(files, TopicArrivals("/cases/1", {"a": stream(2)}, broker))
    (topic,) = broker.topics
    arrivals.place(arrivals.stage([{"a": [[{"v": 9}]]}]))
    arrivals.renew([{"a": [[{"v": 1}], []], "b": [[{"v": 5}]]}, {"a": [[], [{"v": 2}]]}])
    kept = [record for sent in broker.sent for record in sent]
    assert kept == [TopicRecord(topic, 0, None, '{"v": 1}'), TopicRecord(topic, 1, None, '{"v": 2}')]
    assert list((tmp_path / "b").iterdir()) == []  # files come with the directory


def test_a_topic_and_files_that_a_restart_makes_again_have_its_rows_only(broker, tmp_path):
    streams = {"a": stream(2), "c": stream()}
    files = FileArrivals(str(tmp_path), {"b": StreamRequest("v INT", 1)}, LocalFiles())
    arrivals = MixedArrivals(files, TopicArrivals("/cases/1", streams, broker))
    first, _ = broker.topics
    arrivals.place(arrivals.stage([{"a": [[{"v": 9}]], "b": [[{"v": 8}]], "c": [[{"v": 7}]]}]))
    arrivals.recreate({"a": [[{"v": 1}], []], "b": [[{"v": 5}]]})
    kept = [record for sent in broker.sent for record in sent]
    assert [(record.topic == first, record.value) for record in kept] == [(False, '{"v": 7}'), (True, '{"v": 1}')]
    assert [path.read_text() for path in (tmp_path / "b").iterdir()] == ['{"v": 5}\n']


def test_an_arrival_without_rows_is_a_record_without_a_value(broker):
    arrivals = TopicArrivals("/cases/1", {"a": stream(2)}, broker)
    (topic,) = broker.topics
    assert arrivals.stage([{"a": [[], []]}]) == [TopicRecord(topic, 0, None, None)]
    assert arrivals.stage([{"a": [[{"v": None}], []]}]) == [TopicRecord(topic, 0, None, '{"v": null}')]


def test_the_timestamp_of_a_record_is_not_in_its_value(broker):
    arrivals = TopicArrivals("/cases/1", {"a": stream(timestamp="at")}, broker)
    (record,) = arrivals.stage([{"a": [[{"at": "1970-01-01T00:00:01.500000Z", "v": 1}]]}])
    assert (record.timestamp, record.value) == (1500, '{"v": 1}')


def test_another_process_finds_the_topic_of_the_same_case_and_no_other_case_does(broker):
    for folder in ("/cases/1", "/cases/1", "/cases/2"):
        TopicArrivals(folder, {"a": stream()}, broker)
    assert len(broker.topics) == 2


def test_the_topics_of_a_case_are_removed(broker):
    kept = TopicArrivals("/cases/1", {"a": stream()}, broker)
    TopicArrivals("/cases/2", {"a": stream(), "b": stream()}, broker).close()
    assert list(broker.topics) == [record.topic for record in kept.stage([{"a": [[]]}])]


class TestWhatWasRead:
    def source(self, broker, start, end):
        (topic,) = broker.topics
        given = {key: None if one is None else {topic: one} for key, one in (("start", start), ("end", end))}
        return {
            "description": f"KafkaV2[Subscribe[{topic}]]",
            "startOffset": given["start"],
            "endOffset": given["end"],
        }

    @pytest.mark.parametrize(
        ("start", "end", "records"),
        [
            pytest.param(None, {"0": 2, "1": 1}, [2, 1], id="the first micro-batch"),
            pytest.param(None, {"0": 0}, [0], id="an empty topic"),
            pytest.param({"0": 2, "1": 1}, {"0": 2, "1": 4}, [0, 3], id="an idle partition"),
            pytest.param({"0": 2}, {"1": 1, "0": 2}, [0, 1], id="a new partition"),
        ],
    )
    def test_records_by_partition(self, broker, start, end, records):
        arrivals = TopicArrivals("/cases/1", {"a": stream()}, broker)
        read = self.source(broker, start, end)
        assert arrivals.stream_of(read) == "a"
        assert arrivals.records(read) == records

    @pytest.mark.parametrize(
        ("begins", "spark", "records"),
        [
            ("latest", "latest", [0, 0]),
            ("earliest", "earliest", [3, 5]),
            ("[1, 4]", '{"TOPIC": {"0": 1, "1": 4}}', [2, 1]),
            ("[-2, -1]", '{"TOPIC": {"0": -2, "1": -1}}', [3, 0]),
        ],
    )
    def test_a_query_without_checkpoint_may_begin_elsewhere(self, broker, begins, spark, records):
        stream = StreamRequest("v INT", 1, TopicRequest(2, options={"startingOffsets": begins}))
        arrivals = TopicArrivals("/cases/1", {"a": stream}, broker)
        (topic,) = broker.topics
        assert arrivals._start("a") == spark.replace("TOPIC", topic)
        assert arrivals.records(self.source(broker, None, {"0": 3, "1": 5})) == records
        assert arrivals.records(self.source(broker, {"0": 2, "1": 5}, {"0": 3, "1": 5})) == [1, 0]

    def test_another_source_reads_no_records(self, broker):
        arrivals = TopicArrivals("/cases/1", {"a": stream()}, broker)
        for description in ("KafkaV2[Subscribe[other]]", "FileStreamSource[file:/cases/1/a]"):
            assert arrivals.stream_of({"description": description}) is None
            assert arrivals.records({"description": description}) is None


def test_files_and_records_arrive_together(broker, tmp_path):
    files = FileArrivals(str(tmp_path), {"b": StreamRequest("v INT", 1)}, LocalFiles())
    arrivals = MixedArrivals(files, TopicArrivals(str(tmp_path), {"a": stream()}, broker))
    staged = arrivals.stage([{"a": [[{"v": 1}]], "b": [[{"v": 2}]]}])
    assert (list((tmp_path / "b").iterdir()), broker.sent) == ([], [])
    arrivals.place(staged)
    assert [path.read_text() for path in (tmp_path / "b").iterdir()] == ['{"v": 2}\n']
    assert [record.value for record in broker.sent[0]] == ['{"v": 1}']
    assert arrivals.stream_of({"description": f"FileStreamSource[file:{tmp_path}/b]"}) == "b"
    assert arrivals.stream_of({"description": f"KafkaV2[Subscribe[{broker.sent[0][0].topic}]]"}) == "a"


def test_a_topic_grows_and_loses_its_records(broker):
    broker.grow = lambda topic, partitions: broker.topics.update({topic: partitions})
    gone = []
    broker.age_out = gone.append
    arrivals = TopicArrivals("/cases/1", {"a": stream()}, broker)
    (topic,) = broker.topics
    arrivals.grow("a", 3)
    arrivals.age_out()
    assert (broker.topics, gone) == ({topic: 3}, [topic])
