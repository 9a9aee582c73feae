"""What the driver asks of a broker, with a JVM that remembers it."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from harness.driver import topics
from harness.driver.errors import DriverFailure, reason_of
from harness.driver.topics import Broker, TopicRecord


class JavaError(Exception):
    """As py4j's ``Py4JJavaError``."""

    def __init__(self, text):
        super().__init__("An error occurred while calling o1.flush.\n: " + text + "\n\tat …")
        self.java_exception = MagicMock()
        self.java_exception.getCause.return_value = None
        self.java_exception.toString.return_value = text


@pytest.fixture
def jvm():
    return MagicMock()


@pytest.fixture
def admin(jvm):
    """Of a broker that has no topic yet and tells of one partition."""
    found = jvm.org.apache.kafka.clients.admin.AdminClient.create.return_value
    found.listTopics.return_value.names.return_value.get.return_value = set()
    described = found.describeTopics.return_value
    for names in (described.all, described.allTopicNames):
        names.return_value.get.return_value.get.return_value.partitions.return_value.size.return_value = 1
    described.__dir__ = lambda _: ["all", "allTopicNames"]
    return found


@pytest.fixture
def broker(jvm, admin):
    return _at(jvm, "localhost:9092")


def _at(jvm, address):
    return Broker(SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm)), address)


@pytest.mark.parametrize(
    ("address", "how"), [("a:1,b:2", {}), ("s3cret@a:1,b:2", {"security.protocol": "SASL_PLAINTEXT"})]
)
def test_a_client_shows_the_secret_of_the_broker_of_a_run(jvm, admin, address, how):
    broker = _at(jvm, address)
    settings = dict(call.args for call in jvm.java.util.Properties.return_value.setProperty.call_args_list)
    assert broker.access.items() <= settings.items()
    assert settings["bootstrap.servers"] == "a:1,b:2"
    assert how.items() <= settings.items()
    assert ('password="s3cret"' in settings.get("sasl.jaas.config", "")) is bool(how)


def test_records_are_flushed_and_answered_before_anyone_reads(jvm, broker):
    clients = jvm.org.apache.kafka.clients
    broker.send([TopicRecord("t", 1, 5, "{}"), TopicRecord("t", 0, None, None)])
    made = [call.args for call in clients.producer.ProducerRecord.call_args_list]
    assert made == [("t", 1, 5, None, "{}"), ("t", 0, None, None, None)]
    producer = clients.producer.KafkaProducer.return_value
    assert [name for name, _, _ in producer.mock_calls if name in ("send", "flush")] == ["send", "send", "flush"]
    assert producer.send.return_value.get.call_count == 2


def test_a_topic_that_another_process_made_is_kept(admin, broker):
    admin.listTopics.return_value.names.return_value.get.return_value = {"t"}
    broker.create("t", 1)
    admin.createTopics.assert_not_called()


def test_a_topic_is_made_anew_once_the_broker_no_longer_tells_of_it(admin, broker):
    admin.listTopics.return_value.names.return_value.get.side_effect = [{"t"}, {"t"}, set(), set()]
    done = []
    admin.deleteTopics.side_effect = lambda topics: done.append(("delete", topics)) or MagicMock()
    admin.createTopics.side_effect = lambda _: done.append(("create", admin.listTopics.call_count)) or MagicMock()
    broker.replace("t", 1)
    assert done == [("delete", ["t"]), ("create", 4)]


def test_a_topic_that_is_not_there_is_only_made(admin, broker):
    broker.replace("t", 1)
    admin.deleteTopics.assert_not_called()
    assert admin.createTopics.call_count == 1


def test_a_topic_that_the_broker_does_not_remove_is_told(admin, broker, monkeypatch):
    admin.listTopics.return_value.names.return_value.get.return_value = {"t"}
    monkeypatch.setattr(topics, "_TIMEOUT_MS", 0)
    with pytest.raises(DriverFailure, match=r"^Kafka did not remove the topics t$"):
        broker.replace("t", 1)


def test_the_broker_tells_of_no_removed_topic_once_they_are_removed(admin, broker):
    """An engine may end at once, and with it a request that is still on its way."""
    names = admin.listTopics.return_value.names.return_value.get
    names.side_effect = [{"a"}, {"a"}, {"a"}, set()]
    broker.delete(["a", "gone"])
    admin.deleteTopics.assert_called_once_with(["a"])
    admin.deleteTopics.return_value.all.return_value.get.assert_called_once_with()
    assert names.call_count == 4


def test_a_new_topic_is_waited_for(admin, broker):
    known = admin.describeTopics.return_value
    admin.describeTopics.side_effect = [JavaError("UnknownTopicOrPartitionException: not yet"), known]
    broker.create("t", 1)
    assert admin.createTopics.call_count == 1
    assert admin.describeTopics.call_count == 2


@pytest.mark.parametrize(("has", "asked"), [(["all"], "all"), (["all", "allTopicNames"], "allTopicNames")])
def test_clients_of_every_age_are_asked_for_partitions(admin, broker, has, asked):
    described = admin.describeTopics.return_value
    described.__dir__ = lambda _: has
    broker.create("t", 1)
    assert getattr(described, asked).called
    assert [name for name in ("all", "allTopicNames") if getattr(described, name).called] == [asked]


def test_what_a_broker_refuses_is_one_line(jvm, broker):
    refused = JavaError("org.apache.kafka.common.errors.TimeoutException: no broker")
    jvm.org.apache.kafka.clients.producer.KafkaProducer.return_value.flush.side_effect = refused
    with pytest.raises(
        DriverFailure, match=r"^Kafka did not send to the topic t: .*TimeoutException: no broker$"
    ) as error:
        broker.send([TopicRecord("t", 0, None, "{}")])
    assert reason_of(error.value) == "kafka-failed"
