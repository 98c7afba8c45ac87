/** Environment variables that the service reads; `docs/operations/settings.md` lists them. */
import { featureTable } from "#rpc/config-document/features"
import {
  functionCpu,
  functionRuntime,
  functionSnapshots,
  functionStorage
} from "#rpc/function-runtime-limits"
import { functions, guests, hosting, saves, turn } from "#rpc/limits"

/** Length that makes the token impossible to guess. */
export const metricsTokenMinCharacters = 16

/** An environment variable; without a default it is optional. */
export interface Variable {
  readonly description: string
  readonly default?: string
}

/** All environment variables that the service reads. */
export const variables = {
  PORT: { default: "8080", description: "The port to listen on; 0 takes a free one." },
  HOST: { default: "0.0.0.0", description: "The address to listen on." },
  SVC_MAX_CONNECTIONS: {
    default: "60000",
    description:
      "The most connections that the process accepts; further ones are closed at once. The last sixth is " +
      "reserved for requests: a WebSocket upgrade then gets 503."
  },
  SVC_CONNECTIONS_PER_ADDRESS: {
    default: "1000",
    description:
      "The most connections of one client address (IPv4, or /64 of IPv6); further ones get 429. Behind a " +
      "trusted proxy it counts requests in progress and WebSockets. SVC_THROTTLES=off lifts it."
  },
  DATABASE_URL: {
    description:
      "Your own Postgres (14 or newer): postgres://user:password@host/database. In production, one on " +
      "another host needs ?sslmode=. Without it the service runs one in the data directory."
  },
  SVC_DATABASE_CONNECTIONS: {
    default: "10",
    description: "The size of the connection pool to Postgres."
  },
  SVC_LOCK_DATABASE_URL: {
    description:
      "The Postgres of the cluster's runner list and shard locks, the same for all runners. Without it " +
      "they are in the one of DATABASE_URL."
  },
  SVC_DATA_DIR: {
    default: ".svc",
    description:
      "The directory of the embedded Postgres, of hosted files and of the development keys."
  },
  SVC_BASE_URL: {
    description:
      "The public URL of the service, also the issuer of access tokens. " +
      "Default: http://localhost:<PORT>, with the free port if PORT is 0."
  },
  SVC_ALLOW_PUBLIC_DEVELOPMENT: {
    default: "off",
    description:
      "on lets a service outside production start with a public SVC_BASE_URL, whose demo project anybody " +
      "can reach."
  },
  SVC_MASTER_KEY: {
    description:
      "32 random bytes in base64 (openssl rand -base64 32) that encrypt stored secrets, the same " +
      "for all runners. Required in production; in development the first start creates one in the " +
      "data directory."
  },
  SVC_OLDER_MASTER_KEYS: {
    default: "",
    description:
      "Replaced master keys, separated by commas. They decrypt what they have encrypted; new secrets " +
      "use SVC_MASTER_KEY."
  },
  SVC_RUNNER_HOST: {
    description: "The address at which other runners reach this one; setting it joins the cluster."
  },
  SVC_RUNNER_PORT: { description: "The port at which other runners reach this one." },
  SVC_RUNNER_TLS_CERT: {
    description:
      "A certificate in PEM for mutual TLS between runners. Set it with SVC_RUNNER_TLS_KEY and " +
      "SVC_RUNNER_TLS_CA, on all runners."
  },
  SVC_RUNNER_TLS_KEY: { description: "The private key of SVC_RUNNER_TLS_CERT." },
  SVC_RUNNER_TLS_CA: {
    description:
      "The authority that signs the certificates of all runners, and of nothing else: a runner accepts " +
      "each certificate from it."
  },
  SMTP_URL: {
    description:
      "The mail server: smtps://user:password@host:465, or smtp://user:password@host:587 " +
      "(?requireTLS=true requires STARTTLS). Without it, development shows mails to players " +
      "at /dev/mail and prints those to developers; production sends none."
  },
  SVC_MAIL_FROM: {
    description:
      "The sender address of mails; the display name is the project's. Default: no-reply at the host " +
      "of SVC_BASE_URL."
  },
  SVC_THROTTLES: {
    default: "on",
    description: "off disables the request throttles, for benchmarks and tests."
  },
  SVC_SIGNUPS: {
    default: "closed",
    description:
      "Who may sign up as a developer: closed (the first one only), invite (with an invite code of " +
      "the operator) or open (anybody)."
  },
  SVC_DASHBOARD: {
    default: "on",
    description: "The dashboard at /dashboard: on, off, or a port on which only it is offered."
  },
  SVC_SETUP_TOKEN: {
    description:
      "Token that the first developer account needs in production: 16 to 128 characters. Without it " +
      "the first start makes one and prints it once."
  },
  SVC_TRUSTED_PROXIES: {
    default: "",
    description:
      "Addresses and networks (10.0.7.0/24) of trusted proxies, separated by commas: their " +
      "X-Forwarded-For names the client. Name no more than your load balancers."
  },
  SVC_TURN_URLS: {
    default: "",
    description:
      "STUN and TURN servers for peer-to-peer rooms, separated by commas: turn:turn.example.com:3478, " +
      "turns:turn.example.com:5349?transport=tcp, stun:stun.example.com:3478."
  },
  SVC_TURN_PORT: {
    default: "3478",
    description:
      "The UDP port of the embedded TURN server, which a single process outside production starts when " +
      "it is first needed and SVC_TURN_URLS is empty. npm run start:two starts one, too. 0 turns it off."
  },
  SVC_TURN_SECRET: {
    description:
      "The secret shared with the TURN servers (static-auth-secret of coturn), " +
      `${turn.secretMinCharacters} characters or more. Players get credentials derived from it.`
  },
  SVC_VOICE_UDP_PORTS: {
    default: "40500",
    description:
      "The UDP ports of the media server for voice calls, such as 40500-40503: one for each of its " +
      "processes, of which a spare one comes with the first call. 0 is any free port; off turns the server off."
  },
  SVC_VOICE_PUBLIC_IP: {
    description:
      "The IP address at which players reach these UDP ports. The media server needs it in production; " +
      "elsewhere it names all addresses of the machine."
  },
  SVC_DEVELOPER_GOOGLE_CLIENT_ID: {
    description:
      "The OAuth client with which developers sign in with Google. Its redirect URI: " +
      "<SVC_BASE_URL>/v1/developers/oauth/google/callback."
  },
  SVC_DEVELOPER_GOOGLE_CLIENT_SECRET: {
    description: "The secret of SVC_DEVELOPER_GOOGLE_CLIENT_ID."
  },
  SVC_DEVELOPER_GITHUB_CLIENT_ID: {
    description:
      "The OAuth app with which developers sign in with GitHub. Its callback URL: " +
      "<SVC_BASE_URL>/v1/developers/oauth/github/callback."
  },
  SVC_DEVELOPER_GITHUB_CLIENT_SECRET: {
    description: "The secret of SVC_DEVELOPER_GITHUB_CLIENT_ID."
  },
  SVC_DEMO_GAMES: {
    default: "on",
    description:
      "Outside production, deploys two demo games to a project of their own. `off` does not."
  },
  SVC_FEATURES: {
    default: Object.keys(featureTable).join(","),
    description:
      "The features that this deployment offers, separated by commas; others cannot be enabled."
  },
  SVC_SAVE_MAX_BYTES: {
    default: String(saves.dataMaxBytes),
    description: "The largest cloud save, in bytes of JSON."
  },
  SVC_SAVES_PER_PLAYER: {
    default: String(saves.perPlayer),
    description: "The most cloud saves that a player may have."
  },
  SVC_GUEST_SAVE_BYTES: {
    default: String(saves.guestBytes),
    description: "The most bytes of all cloud saves of a guest."
  },
  SVC_ENVIRONMENT_SAVE_BYTES: {
    default: String(saves.environmentBytes),
    description:
      "The most bytes of all cloud saves of an environment. What is written within ten seconds may exceed it."
  },
  SVC_HOSTING_DOMAIN: {
    description:
      "The domain below which apps are served, such as apps.example.net, with a wildcard DNS record. It " +
      "should be another registrable domain than that of SVC_BASE_URL. Default outside production: " +
      "localhost."
  },
  SVC_NAME_SERVERS: {
    description:
      "Comma-separated IPv4 addresses of the name servers that are asked for the TXT records of custom " +
      "domains, such as 1.1.1.1,8.8.8.8:53. Default: those of the system."
  },
  SVC_ENVIRONMENT_BLOB_BYTES: {
    default: String(hosting.environmentBytes),
    description: "The most bytes of all files of the deployments of one environment."
  },
  SVC_DEPLOYMENT_RETENTION_DAYS: {
    default: String(hosting.retentionDays),
    description:
      "Days for which a deployment is kept after it was live. The newest 20 of an environment are always " +
      "kept."
  },
  SVC_HOSTING_STALE_DAYS: {
    default: String(hosting.staleDays),
    description:
      "Days for which files with a hash in their name are served after their version was live, so that " +
      "pages opened before a deploy find their parts. 0: never."
  },
  SVC_BLOBS_URL: {
    description:
      "The bucket of the files of deployments, s3://bucket or s3://bucket/prefix, for runners on several " +
      "machines. Absent: the folder blobs of SVC_DATA_DIR; folder says that all runners share it on a volume."
  },
  SVC_S3_ENDPOINT: {
    description:
      "The address of an S3-compatible service, such as https://minio.example.net. Default: that of AWS " +
      "in SVC_S3_REGION."
  },
  SVC_S3_REGION: { default: "us-east-1", description: "The region of the bucket." },
  AWS_ACCESS_KEY_ID: { description: "The access key for the bucket of SVC_BLOBS_URL." },
  AWS_SECRET_ACCESS_KEY: { description: "The secret of that access key." },
  SVC_BLOB_CACHE_BYTES: {
    default: String(hosting.diskCacheBytes),
    description: "The most bytes of files from the bucket that a runner keeps in SVC_DATA_DIR."
  },
  SVC_FUNCTIONS_PROCESSES: {
    default: "32",
    description:
      "The most environments whose functions run at once on this runner, each in a process of its own; the " +
      "one that has been idle longest makes room. 0: this runner runs none."
  },
  SVC_FUNCTIONS_MEMORY_MB: {
    default: "256",
    description: "Memory, in MiB, at which the process of an environment's functions is ended."
  },
  SVC_FUNCTIONS_STORAGE_MB: {
    default: String(functionStorage.megabytesDefault),
    description:
      "The most MiB that the functions of an environment store on disk. Beyond it bindings refuse to add; " +
      "a quarter (at least 16 MiB) beyond it its code is stopped. 0: no limit."
  },
  SVC_FUNCTIONS_DISK_RESERVE_MB: {
    default: String(functionStorage.reserveMegabytesDefault),
    description:
      "MiB of the disk of the data directory that functions leave free. With less, no environment may add " +
      "to what it stores. 0: none."
  },
  SVC_FUNCTIONS_CPU_SECONDS_PER_MINUTE: {
    default: String(functionCpu.secondsPerMinuteDefault),
    description:
      "Seconds of CPU time that the functions of an environment may use in a minute: calls, crons, queues, " +
      "timers and alarms. Beyond it calls are refused until time has repaid it. 0: no limit."
  },
  SVC_FUNCTIONS_CPU_MS_MAX: {
    default: String(functions.cpuMillisMax),
    description: "The greatest cpuMs, in milliseconds, that the functions of an environment get."
  },
  SVC_FUNCTIONS_CALLS: {
    default: String(functionRuntime.callsMax),
    description: "The most calls of an environment's functions under way; further ones get 503."
  },
  SVC_FUNCTIONS_SNAPSHOT_SECONDS: {
    default: String(functionSnapshots.secondsDefault),
    description:
      "Seconds between two snapshots of what an environment's functions store, while it changes. They are " +
      "taken where the service has several runners or a bucket. 0: never."
  },
  SVC_BILLING: {
    default: "off",
    description:
      "on meters the usage of projects, charges it to their developers and takes payments."
  },
  SVC_PRICES: {
    default: "{}",
    description:
      'Prices of usage in micro-USD, as JSON: {"egressBytes": {"microUsd": 90000, "per": 1073741824}}. ' +
      "What is not in it is free."
  },
  SVC_STRIPE_SECRET_KEY: {
    description:
      "The secret key of Stripe (sk_live_...), which takes the payments. Without it there are none."
  },
  SVC_STRIPE_WEBHOOK_SECRETS: {
    default: "",
    description:
      "The signing secrets (whsec_...) of Stripe's webhook to /v1/payments/stripe, separated by commas."
  },
  SVC_GUEST_EXPIRY_DAYS: {
    default: String(guests.expiryDays),
    description:
      "Guests whose last refresh token expired this many days ago are deleted with all their data. " +
      "0: never."
  },
  SVC_METRICS_TOKEN: {
    description:
      `The bearer token for GET /metrics, ${metricsTokenMinCharacters} characters or more. ` +
      "Without it, programs on this machine may read in development and nobody in production."
  },
  SVC_LOG_LEVEL: {
    default: "info",
    description: "The lowest level that is logged: debug, info, warning or error."
  },
  SVC_LOG_FORMAT: {
    description:
      "json (one line per event; default in production) or pretty (default in development)."
  },
  SVC_LOG_REQUESTS: {
    default: "failed",
    description: "The requests that are logged: failed (status 5xx) or all."
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    description:
      "The OTLP/HTTP collector for traces, such as http://localhost:4318. Without it there is no " +
      "tracing."
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    default: "http/protobuf",
    description: "The encoding of traces: http/protobuf or http/json."
  },
  OTEL_SERVICE_NAME: {
    default: "player-backend",
    description: "The name of the service in traces."
  },
  OTEL_TRACES_SAMPLER_ARG: {
    default: "1",
    description: "The share of traces to record, from 0 to 1."
  },
  NODE_ENV: {
    default: "development",
    description:
      "production requires SVC_MASTER_KEY, creates no demo project and has no development pages; " +
      "otherwise development or test, which are the same."
  }
} as const satisfies Record<string, Variable>
