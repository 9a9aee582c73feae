import com.hazelcast.internal.util.concurrent.ConcurrentConveyor;
import com.hazelcast.internal.util.concurrent.OneToOneConcurrentArrayQueue;
import com.hazelcast.internal.util.concurrent.QueuedPipe;
import com.hazelcast.jet.aggregate.AggregateOperations;
import com.hazelcast.jet.core.Processor;
import com.hazelcast.jet.core.TimestampKind;
import com.hazelcast.jet.core.Watermark;
import com.hazelcast.jet.core.WatermarkEmissionPolicy;
import com.hazelcast.jet.core.WatermarkPolicies;
import com.hazelcast.jet.core.WatermarkPolicy;
import com.hazelcast.jet.core.WindowDefinition;
import com.hazelcast.jet.core.processor.Processors;
import com.hazelcast.jet.core.test.TestInbox;
import com.hazelcast.jet.core.test.TestOutbox;
import com.hazelcast.jet.core.test.TestProcessorContext;
import com.hazelcast.jet.datamodel.TimestampedEntry;
import com.hazelcast.jet.impl.execution.ConcurrentInboundEdgeStream;
import com.hazelcast.jet.impl.processor.InsertWatermarksP;
import com.hazelcast.jet.impl.util.WatermarkPolicyUtil;
import com.hazelcast.logging.NoLogFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.json.JSONArray;
import org.json.JSONObject;

/**
 * Hazelcast Jet 0.5: each line of the standard input is a trace, each line of the output its answers. An input is an InsertWatermarksP
 * with its own policy; a ConcurrentInboundEdgeStream merges what they emit, as in front of every downstream processor; with windows,
 * that processor is Jet's own for tumbling windows. Only the clock is ours.
 */
public final class HazelcastJet05 {
    private static final int CAPACITY = 1 << 12;

    private final JSONObject trace;
    private final List<String> inputs = new ArrayList<>();
    private final List<Processor> sources = new ArrayList<>();
    private final List<TestOutbox> emitted = new ArrayList<>();
    private final ConcurrentConveyor<Object> conveyor;
    private final ConcurrentInboundEdgeStream merged;
    private final Processor windows;
    private final TestOutbox completed = new TestOutbox(CAPACITY);
    private long nanos;
    private Long downstream;

    private HazelcastJet05(JSONObject trace) {
        this.trace = trace;
        for (Object input : trace.getJSONArray("inputs")) {
            inputs.add((String) input);
        }
        clock(trace.getLong("clock"));
        QueuedPipe<Object>[] queues = pipes(inputs.size());
        for (int input = 0; input < inputs.size(); input++) {
            Processor source = new InsertWatermarksP<long[]>(event -> event[0], policy(), throttle());
            TestOutbox outbox = new TestOutbox(CAPACITY);
            start(source, outbox);
            sources.add(source);
            emitted.add(outbox);
            queues[input] = new OneToOneConcurrentArrayQueue<>(CAPACITY);
        }
        conveyor = ConcurrentConveyor.concurrentConveyor(null, queues);
        merged = new ConcurrentInboundEdgeStream(conveyor, 0, 0, -1, false);
        windows = trace.isNull("window") ? null : Processors
                .aggregateToSlidingWindowP((long[] event) -> "", event -> event[0], TimestampKind.EVENT,
                        WindowDefinition.tumblingWindowDef(trace.getLong("window")), AggregateOperations.counting())
                .get();
        if (windows != null) {
            start(windows, completed);
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        System.setOut(System.err); // nothing that the engine prints is taken for an answer
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(new HazelcastJet05(new JSONObject(line)).answer());
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
            } catch (Exception failure) {
                return answer.put("failure", failure.toString());
            }
        }
        return answer;
    }

    private JSONObject step(JSONObject entry) throws Exception {
        if (entry.has("clock")) {
            clock(entry.getLong("clock"));
            return new JSONObject();
        }
        Long before = downstream;
        JSONObject step = new JSONObject();
        if (entry.has("event")) {
            int input = inputs.indexOf(entry.getString("input"));
            TestInbox inbox = new TestInbox();
            inbox.add(new long[] {entry.getLong("event")});
            sources.get(input).process(0, inbox);
            step.put("late", !forward(input));
        } else if (entry.has("idle")) {
            for (int input = 0; input < inputs.size(); input++) {
                if (entry.isNull("idle") || entry.getString("idle").equals(inputs.get(input))) {
                    sources.get(input).tryProcess();
                    forward(input);
                }
            }
        }
        receive();
        JSONObject watermarks = new JSONObject();
        for (int input = 0; input < inputs.size(); input++) {
            watermarks.put(inputs.get(input), orNull(watermark(sources.get(input))));
        }
        step.put("watermark", watermarks);
        step.put("emitted", Objects.equals(downstream, before) ? JSONObject.NULL : downstream);
        step.put("downstream", downstream == null ? JSONObject.NULL : downstream);
        return windows == null ? step : step.put("closed", new JSONArray(closed()));
    }

    /** Hand over what a source emitted; whether an event was among it. */
    private boolean forward(int input) {
        boolean event = false;
        Queue<Object> queue = emitted.get(input).queueWithOrdinal(0);
        for (Object item = queue.poll(); item != null; item = queue.poll()) {
            event |= item instanceof long[];
            conveyor.offer(input, item);
        }
        return event;
    }

    private void receive() {
        List<Object> items = new ArrayList<>();
        while (merged.drainTo(items::add).isMadeProgress()) {
            // A drain ends at a watermark, even if more is waiting.
        }
        for (Object item : items) {
            if (item instanceof Watermark) {
                downstream = ((Watermark) item).timestamp();
            }
            if (windows != null) {
                TestInbox inbox = new TestInbox();
                inbox.add(item);
                windows.process(0, inbox);
            }
        }
    }

    private TreeSet<Long> closed() {
        TreeSet<Long> ends = new TreeSet<>();
        Queue<Object> queue = completed.queueWithOrdinal(0);
        for (Object item = queue.poll(); item != null; item = queue.poll()) {
            if (item instanceof TimestampedEntry) {
                ends.add(((TimestampedEntry<?, ?>) item).getTimestamp());
            }
        }
        return ends;
    }

    private WatermarkPolicy policy() {
        JSONObject given = trace.getJSONObject("parameters");
        switch (trace.getString("policy")) {
            case "with-fixed-lag":
                return WatermarkPolicies.withFixedLag(given.getLong("lag")).get();
            case "limiting-lag-and-delay":
                return WatermarkPolicyUtil.limitingLagAndDelay(given.getLong("lag"), given.getLong("maxDelay"), given.getInt("samples"),
                        () -> nanos);
            case "limiting-lag-and-lull":
                return WatermarkPolicyUtil.limitingLagAndLull(given.getLong("lag"), given.getLong("maxLull"), () -> nanos).get();
            case "limiting-timestamp-and-wall-clock-lag":
                return WatermarkPolicyUtil.limitingTimestampAndWallClockLag(given.getLong("timestampLag"), given.getLong("wallClockLag"),
                        () -> TimeUnit.NANOSECONDS.toMillis(nanos)).get();
            default:
                throw new IllegalArgumentException(trace.getString("policy"));
        }
    }

    private WatermarkEmissionPolicy throttle() {
        JSONObject given = trace.optJSONObject("throttle", new JSONObject());
        switch (given.optString("name", "suppress-duplicates")) {
            case "suppress-duplicates":
                return WatermarkEmissionPolicy.suppressDuplicates();
            case "emit-by-min-step":
                return WatermarkEmissionPolicy.emitByMinStep(given.getLong("step"));
            case "emit-by-frame":
                return WatermarkEmissionPolicy.emitByFrame(
                        WindowDefinition.tumblingWindowDef(given.getLong("frame")).withOffset(given.optLong("offset")));
            default:
                throw new IllegalArgumentException(given.getString("name"));
        }
    }

    private void clock(long reading) {
        nanos = trace.getString("clockUnit").equals("ns") ? reading : TimeUnit.MILLISECONDS.toNanos(reading);
    }

    private static void start(Processor processor, TestOutbox outbox) {
        processor.init(outbox, new TestProcessorContext().setLogger(new NoLogFactory().getLogger("")));
    }

    /** The watermark of the policy, as the processor last saw it: asking the policy itself could move it. */
    private static long watermark(Processor source) throws ReflectiveOperationException {
        Field field = InsertWatermarksP.class.getDeclaredField("currWm");
        field.setAccessible(true);
        return field.getLong(source);
    }

    @SuppressWarnings("unchecked")
    private static QueuedPipe<Object>[] pipes(int size) {
        return new QueuedPipe[size];
    }

    private static Object orNull(long watermark) {
        return watermark == Long.MIN_VALUE ? JSONObject.NULL : (Object) watermark;
    }
}
