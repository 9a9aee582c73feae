import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.beam.sdk.io.kafka.CustomTimestampPolicyWithLimitedDelay;
import org.apache.beam.sdk.io.kafka.KafkaRecord;
import org.apache.beam.sdk.io.kafka.KafkaTimestampType;
import org.apache.beam.sdk.io.kafka.TimestampPolicy;
import org.apache.beam.sdk.transforms.splittabledofn.ManualWatermarkEstimator;
import org.apache.beam.sdk.transforms.splittabledofn.WatermarkEstimators;
import org.apache.beam.sdk.transforms.windowing.BoundedWindow;
import org.joda.time.DateTimeUtils;
import org.joda.time.Duration;
import org.joda.time.Instant;
import org.json.JSONArray;
import org.json.JSONObject;

/**
 * Beam's KafkaIO: each line of the standard input is a trace, each line of the output its answers. An input is a partition with its
 * timestamp policy and, as in ReadFromKafkaDoFn, a manual watermark estimator. Only the clock is ours.
 */
public final class BeamKafkaIO {
    private final JSONObject trace;
    private final Map<String, Partition> partitions = new LinkedHashMap<>();
    private long now;

    private BeamKafkaIO(JSONObject trace) {
        this.trace = trace;
        clock(trace.getLong("clock"));
        for (Object name : trace.getJSONArray("inputs")) {
            partitions.put((String) name, new Partition());
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        System.setOut(System.err); // nothing that the engine prints is taken for an answer
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(new BeamKafkaIO(new JSONObject(line)).answer());
            out.flush();
        }
    }

    private JSONObject answer() {
        JSONArray steps = new JSONArray();
        JSONObject answer = new JSONObject().put("steps", steps);
        JSONArray entries = trace.getJSONArray("entries");
        for (int number = 0; number < entries.length(); number++) {
            try {
                steps.put(step(entries.getJSONObject(number)));
            } catch (RuntimeException failure) {
                return answer.put("failure", failure.toString());
            }
        }
        return answer;
    }

    private JSONObject step(JSONObject entry) {
        if (entry.has("clock")) {
            clock(entry.getLong("clock"));
            return new JSONObject();
        }
        if (entry.has("event")) {
            partitions.get(entry.getString("input")).record(entry.getLong("event"));
        } else {
            for (Map.Entry<String, Partition> one : partitions.entrySet()) {
                if (!entry.has("idle") || entry.isNull("idle") || entry.getString("idle").equals(one.getKey())) {
                    one.getValue().report(entry.has("idle") ? 0 : 1);
                }
            }
        }
        JSONObject watermarks = new JSONObject();
        for (Map.Entry<String, Partition> one : partitions.entrySet()) {
            Instant watermark = one.getValue().estimator.currentWatermark();
            boolean none = watermark.equals(BoundedWindow.TIMESTAMP_MIN_VALUE);
            watermarks.put(one.getKey(), none ? JSONObject.NULL : (Object) watermark.getMillis());
        }
        return new JSONObject().put("watermark", watermarks);
    }

    private void clock(long reading) {
        now = trace.getString("clockUnit").equals("ns") ? TimeUnit.NANOSECONDS.toMillis(reading) : reading;
        DateTimeUtils.setCurrentMillisFixed(now);
    }

    private final class Partition extends TimestampPolicy.PartitionContext {
        private final TimestampPolicy<String, Long> policy = new CustomTimestampPolicyWithLimitedDelay<>(
                record -> new Instant(record.getTimestamp()),
                Duration.millis(trace.getJSONObject("parameters").getLong("maxDelay")),
                Optional.empty());
        private final ManualWatermarkEstimator<Instant> estimator =
                new WatermarkEstimators.Manual(BoundedWindow.TIMESTAMP_MIN_VALUE);
        private long backlog;

        private void record(long timestamp) {
            policy.getTimestampForRecord(
                    this, new KafkaRecord<>("", 0, 0, timestamp, KafkaTimestampType.CREATE_TIME, null, "", timestamp));
        }

        private void report(long left) {
            backlog = left;
            estimator.setWatermark(policy.getWatermark(this));
        }

        @Override
        public long getMessageBacklog() {
            return backlog;
        }

        @Override
        public Instant getBacklogCheckTime() {
            return new Instant(now);
        }
    }
}
