import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.json.JSONArray;
import org.json.JSONObject;

/**
 * Kafka Streams: each line of the standard input is a trace, each line of the output its answers. The inputs are topics of one task,
 * which TopologyTestDriver runs: a count in tumbling windows, which updates for every record that is not late, and the same count
 * suppressed until its window closes.
 */
public final class KafkaStreams {
    private static final Serde<String> TEXT = Serdes.String();

    private final JSONObject trace;
    private final long grace;
    private final TopologyTestDriver driver;
    private final Map<String, TestInputTopic<String, String>> topics = new LinkedHashMap<>();
    private final TreeSet<Long> closed = new TreeSet<>();
    private boolean counted;
    private long streamTime = -1;

    private KafkaStreams(JSONObject trace) {
        this.trace = trace;
        grace = trace.getJSONObject("parameters").getLong("grace");
        List<String> names = new ArrayList<>();
        for (Object name : trace.getJSONArray("inputs")) {
            names.add((String) name);
        }
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> records = builder.stream(names, Consumed.with(TEXT, TEXT));
        records.process(() -> new ContextualProcessor<String, String, Void, Void>() {
            @Override
            public void process(Record<String, String> record) {
                streamTime = context().currentStreamTimeMs();
            }
        });
        if (!trace.isNull("window")) {
            count(records, trace.getLong("window"));
        }
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "policy");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:0");
        driver = new TopologyTestDriver(builder.build(), properties, Instant.EPOCH);
        for (String name : names) {
            topics.put(name, driver.createInputTopic(name, TEXT.serializer(), TEXT.serializer()));
        }
    }

    private void count(KStream<String, String> records, long size) {
        TimeWindows windows = TimeWindows.ofSizeAndGrace(Duration.ofMillis(size), Duration.ofMillis(grace));
        KTable<Windowed<String>, Long> count = records
                .groupByKey(Grouped.with(TEXT, TEXT))
                .windowedBy(windows)
                .count(Materialized.<String, Long>as(Stores.inMemoryWindowStore(
                        "count", Duration.ofMillis(size + grace), Duration.ofMillis(size), false))
                        .withKeySerde(TEXT).withValueSerde(Serdes.Long()));
        count.toStream().foreach((window, value) -> counted = true);
        count.suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closed"))
                .toStream()
                .foreach((window, value) -> closed.add(window.window().end()));
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        System.setOut(System.err); // nothing that the engine prints is taken for an answer
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(new KafkaStreams(new JSONObject(line)).answer());
            out.flush();
        }
    }

    private JSONObject answer() {
        JSONArray steps = new JSONArray();
        JSONObject answer = new JSONObject().put("steps", steps);
        JSONArray entries = trace.getJSONArray("entries");
        try (driver) {
            for (int number = 0; number < entries.length(); number++) {
                steps.put(step(entries.getJSONObject(number)));
            }
        } catch (RuntimeException failure) {
            return answer.put("failure", failure.toString());
        }
        return answer;
    }

    private JSONObject step(JSONObject entry) {
        JSONObject step = new JSONObject();
        if (entry.has("clock")) {
            return step;
        }
        counted = false;
        closed.clear();
        long before = streamTime;
        if (entry.has("event")) {
            topics.get(entry.getString("input")).pipeInput("", "", entry.getLong("event"));
            step.put("late", !trace.isNull("window") && !counted);
        }
        Object watermark = streamTime < 0 ? JSONObject.NULL : (Object) (streamTime - grace);
        JSONObject watermarks = new JSONObject();
        for (String name : topics.keySet()) {
            watermarks.put(name, watermark);
        }
        step.put("watermark", watermarks);
        step.put("emitted", streamTime == before ? JSONObject.NULL : watermark);
        step.put("downstream", watermark);
        return trace.isNull("window") ? step : step.put("closed", new JSONArray(closed));
    }
}
