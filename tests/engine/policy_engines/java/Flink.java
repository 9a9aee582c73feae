import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.eventtime.BoundedOutOfOrdernessWatermarks;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkOutputMultiplexer;
import org.apache.flink.api.common.eventtime.WatermarksWithIdleness;
import org.apache.flink.util.clock.RelativeClock;
import org.json.JSONArray;
import org.json.JSONObject;

/**
 * Flink: each line of the standard input is a trace, each line of the output its answers. An input is a split of one source, with a
 * generator of its own; as in ProgressiveTimestampsAndWatermarks, events go to the immediate output of the split, periodic emissions to
 * its deferred one, and a WatermarkOutputMultiplexer combines them. Only the clock is ours.
 */
public final class Flink {
    /** Where the clock begins, as arbitrary as that of System.nanoTime(): the idleness timer takes a time of 0 for "not started". */
    private static final long ORIGIN = 1L << 50;

    private final JSONObject trace;
    private final Map<String, Split> splits = new LinkedHashMap<>();
    private final Downstream downstream = new Downstream();
    private final WatermarkOutputMultiplexer multiplexer = new WatermarkOutputMultiplexer(downstream);
    private long nanos;

    private Flink(JSONObject trace) {
        this.trace = trace;
        clock(trace.getLong("clock"));
        for (Object name : trace.getJSONArray("inputs")) {
            splits.put((String) name, new Split((String) name));
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        System.setOut(System.err); // nothing that the engine prints is taken for an answer
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(new Flink(new JSONObject(line)).answer());
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
        Long before = downstream.watermark;
        if (entry.has("event")) {
            Split split = splits.get(entry.getString("input"));
            split.generator.onEvent("", entry.getLong("event"), split.onEvent);
        } else {
            for (Map.Entry<String, Split> one : splits.entrySet()) {
                if (!entry.has("idle") || entry.isNull("idle") || entry.getString("idle").equals(one.getKey())) {
                    one.getValue().generator.onPeriodicEmit(one.getValue().periodic);
                }
            }
            multiplexer.onPeriodicEmit();
        }
        JSONObject watermarks = new JSONObject();
        JSONArray idle = new JSONArray();
        for (Map.Entry<String, Split> one : splits.entrySet()) {
            watermarks.put(one.getKey(), orNull(one.getValue().watermark));
            if (one.getValue().idle) {
                idle.put(one.getKey());
            }
        }
        return new JSONObject()
                .put("watermark", watermarks)
                .put("idle", idle)
                .put("emitted", Objects.equals(downstream.watermark, before) ? JSONObject.NULL : downstream.watermark)
                .put("downstream", orNull(downstream.watermark));
    }

    private void clock(long reading) {
        nanos = ORIGIN + (trace.getString("clockUnit").equals("ns") ? reading : TimeUnit.MILLISECONDS.toNanos(reading));
    }

    private static Object orNull(Long watermark) {
        return watermark == null || watermark == Long.MIN_VALUE ? JSONObject.NULL : watermark;
    }

    private final class Clock implements RelativeClock {
        @Override
        public long relativeTimeMillis() {
            return TimeUnit.NANOSECONDS.toMillis(nanos);
        }

        @Override
        public long relativeTimeNanos() {
            return nanos;
        }
    }

    private static final class Downstream implements WatermarkOutput {
        private Long watermark;

        @Override
        public void emitWatermark(Watermark emitted) {
            watermark = emitted.getTimestamp();
        }

        @Override
        public void markIdle() {
            // The whole source is idle; its watermark stays.
        }

        @Override
        public void markActive() {
            // Operators get no watermark from this.
        }
    }

    private final class Split {
        private final WatermarkGenerator<String> generator;
        private final WatermarkOutput onEvent;
        private final WatermarkOutput periodic;
        private Long watermark;
        private boolean idle;

        private Split(String name) {
            JSONObject given = trace.getJSONObject("parameters");
            WatermarkGenerator<String> bounded =
                    new BoundedOutOfOrdernessWatermarks<>(Duration.ofMillis(given.getLong("bound")));
            generator = given.isNull("idleTimeout")
                    ? bounded
                    : new WatermarksWithIdleness<>(bounded, Duration.ofMillis(given.getLong("idleTimeout")), new Clock());
            multiplexer.registerNewOutput(name, emitted -> { });
            onEvent = observed(multiplexer.getImmediateOutput(name));
            periodic = observed(multiplexer.getDeferredOutput(name));
        }

        /** The same output, which also tells what the generator says through it. */
        private WatermarkOutput observed(WatermarkOutput output) {
            return new WatermarkOutput() {
                @Override
                public void emitWatermark(Watermark emitted) {
                    watermark = emitted.getTimestamp();
                    idle = false;
                    output.emitWatermark(emitted);
                }

                @Override
                public void markIdle() {
                    idle = true;
                    output.markIdle();
                }

                @Override
                public void markActive() {
                    idle = false;
                    output.markActive();
                }
            };
        }
    }
}
