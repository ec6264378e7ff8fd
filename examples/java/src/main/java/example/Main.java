package example;

import com.bytepair.v1.CountRequest;
import com.bytepair.v1.DecodeStreamConfig;
import com.bytepair.v1.DecodeStreamRequest;
import com.bytepair.v1.DecodeStreamResponse;
import com.bytepair.v1.EncodeRequest;
import com.bytepair.v1.TokenizerServiceGrpc;
import com.google.protobuf.Any;
import com.google.protobuf.Duration;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.CallCredentials;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/**
 * A client in Java: counts a text, decodes a stream of ids, and reads the details of an error.
 *
 * <pre>mvn compile exec:java</pre>
 *
 * BYTEPAIR_TARGET is the server (localhost:50051), BYTEPAIR_API_KEY a key, and BYTEPAIR_TLS_CA a
 * file of authorities, for a server with TLS.
 */
public final class Main {
  private static final String ENCODING = "gpt-4o";

  /**
   * Calls with one request are safe to repeat. A stream is not: what it has sent would be lost. A
   * stopping server may end a call with CANCELLED.
   */
  private static final Map<String, ?> RETRIES =
      Map.of(
          "methodConfig",
          List.of(
              Map.of(
                  "name",
                  List.of(
                      Map.of("service", "bytepair.v1.TokenizerService", "method", "Count"),
                      Map.of("service", "bytepair.v1.TokenizerService", "method", "Encode")),
                  "retryPolicy",
                  Map.of(
                      "maxAttempts", 4.0,
                      "initialBackoff", "0.1s",
                      "maxBackoff", "1s",
                      "backoffMultiplier", 2.0,
                      "retryableStatusCodes", List.of("UNAVAILABLE", "CANCELLED")))));

  /** Sends a key with each call. */
  private static final class ApiKey extends CallCredentials {
    private static final Metadata.Key<String> HEADER =
        Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
    private final String key;

    ApiKey(String key) {
      this.key = key;
    }

    @Override
    public void applyRequestMetadata(RequestInfo info, Executor executor, MetadataApplier applier) {
      Metadata headers = new Metadata();
      headers.put(HEADER, "Bearer " + key);
      applier.apply(headers);
    }
  }

  /** A channel as the environment says. */
  private static ManagedChannel connect() throws IOException {
    String authorities = System.getenv("BYTEPAIR_TLS_CA");
    ChannelCredentials credentials =
        authorities == null
            ? InsecureChannelCredentials.create()
            : TlsChannelCredentials.newBuilder().trustManager(new File(authorities)).build();
    String target = System.getenv().getOrDefault("BYTEPAIR_TARGET", "localhost:50051");
    return Grpc.newChannelBuilder(target, credentials)
        // Some answers are larger than the 4 MiB that gRPC accepts by default.
        .maxInboundMessageSize(64 << 20)
        // Without pings, a stream whose connection was lost silently would never end.
        .keepAliveTime(20, TimeUnit.SECONDS)
        .defaultServiceConfig(RETRIES)
        .enableRetry()
        .build();
  }

  /** Send ids one by one, as a model gives them, and join the text that comes back. */
  private static String decode(TokenizerServiceGrpc.TokenizerServiceStub client, List<Integer> ids) {
    StringBuilder text = new StringBuilder();
    CompletableFuture<String> done = new CompletableFuture<>();
    StreamObserver<DecodeStreamRequest> requests =
        client.decodeStream(
            new StreamObserver<>() {
              @Override
              public void onNext(DecodeStreamResponse answer) {
                text.append(answer.getText());
              }

              @Override
              public void onError(Throwable error) {
                done.completeExceptionally(error);
              }

              @Override
              public void onCompleted() {
                done.complete(text.toString());
              }
            });
    DecodeStreamConfig config = DecodeStreamConfig.newBuilder().setEncoding(ENCODING).build();
    requests.onNext(DecodeStreamRequest.newBuilder().setConfig(config).build());
    for (int id : ids) {
      requests.onNext(DecodeStreamRequest.newBuilder().addIds(id).build());
    }
    requests.onCompleted();
    return done.join();
  }

  /** A detail of an error; empty where the server did not give one. */
  private static <T extends Message> Optional<T> detail(Throwable error, Class<T> type) {
    com.google.rpc.Status status = StatusProto.fromThrowable(error);
    if (status == null) {
      return Optional.empty();
    }
    for (Any detail : status.getDetailsList()) {
      if (detail.is(type)) {
        try {
          return Optional.of(detail.unpack(type));
        } catch (InvalidProtocolBufferException unreadable) {
          return Optional.empty();
        }
      }
    }
    return Optional.empty();
  }

  /** The reason of an error, such as UNKNOWN_ENCODING; "" where the server did not give one. */
  private static String reason(Throwable error) {
    return detail(error, ErrorInfo.class).map(ErrorInfo::getReason).orElse("");
  }

  /** The seconds after which a call may be retried, as with OVERLOADED and QUOTA_EXCEEDED, or 0. */
  private static double retryAfter(Throwable error) {
    Optional<Duration> delay = detail(error, RetryInfo.class).map(RetryInfo::getRetryDelay);
    return delay.map(it -> it.getSeconds() + it.getNanos() / 1e9).orElse(0.0);
  }

  private static void run(ManagedChannel channel) {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    var blocking = TokenizerServiceGrpc.newBlockingStub(channel);
    var streaming = TokenizerServiceGrpc.newStub(channel);
    String key = System.getenv("BYTEPAIR_API_KEY");
    if (key != null) {
      blocking = blocking.withCallCredentials(new ApiKey(key));
      streaming = streaming.withCallCredentials(new ApiKey(key));
    }
    // A stream lasts as long as a model writes, so it has no deadline.
    blocking = blocking.withDeadlineAfter(10, TimeUnit.SECONDS);

    var count = CountRequest.newBuilder().setEncoding(ENCODING).setText("hello world").build();
    var counted = blocking.count(count);
    out.println("count " + counted.getCount() + " " + counted.getEncoding());
    var encode = EncodeRequest.newBuilder().setEncoding(ENCODING).setText("a naïve 👋 café").build();
    out.println("stream " + decode(streaming, blocking.encode(encode).getIdsList()));
    try {
      blocking.count(count.toBuilder().setEncoding("gpt-unknown").build());
    } catch (StatusRuntimeException error) {
      out.println("reason " + reason(error));
    }
  }

  public static void main(String[] arguments) throws IOException {
    ManagedChannel channel = connect();
    try {
      run(channel);
    } catch (StatusRuntimeException | CompletionException error) {
      String wait = " (retry after " + retryAfter(error) + "s) ";
      System.err.println(reason(error) + wait + error.getMessage());
      System.exit(1);
    } finally {
      channel.shutdownNow();
    }
  }
}
