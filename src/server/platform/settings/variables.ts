/** Every environment variable that the service reads, as the README lists it (design section 7). */
import { featureTable } from "#rpc/config-document/features"
import { saves, turn } from "#rpc/limits"

/** As many cannot be guessed. */
export const metricsTokenMinCharacters = 16

/** An environment variable as the README lists it; without a default it may be absent. */
export interface Variable {
  readonly description: string
  readonly default?: string
}

const elsewhere = (provider: string): string =>
  `Where sign-in with ${provider} is, with its paths, instead of at ${provider}: for tests.`

/** Every environment variable that the service reads. */
export const variables = {
  PORT: { default: "8080", description: "The port to listen on; 0 takes a free one." },
  HOST: { default: "0.0.0.0", description: "The address to listen on." },
  SVC_MAX_CONNECTIONS: {
    default: "60000",
    description:
      "The most connections that the process takes; one more is closed at once. The last sixth is " +
      "for requests: a WebSocket that asks for it is answered 503."
  },
  DATABASE_URL: {
    description:
      "A Postgres of your own (14 or newer): postgres://user:password@host/database. " +
      "Absent, the service runs one in the data directory."
  },
  SVC_DATABASE_CONNECTIONS: {
    default: "10",
    description: "The most connections that the process opens to Postgres for statements."
  },
  SVC_DATA_DIR: {
    default: ".svc",
    description: "Where the embedded Postgres and the keys of development are kept."
  },
  SVC_BASE_URL: {
    description:
      "The address that players reach the service at, also the issuer of access tokens. " +
      "Absent, http://localhost:<PORT>."
  },
  SVC_MASTER_KEY: {
    description:
      "32 random bytes in base64 (openssl rand -base64 32), the same for all runners: they " +
      "encrypt stored secrets. Required in production; in development one is made in the data " +
      "directory."
  },
  SVC_OLDER_MASTER_KEYS: {
    default: "",
    description:
      "Master keys of before, by comma, for when SVC_MASTER_KEY is replaced: they open what they " +
      "have sealed, and nothing new is sealed under them."
  },
  SVC_RUNNER_HOST: {
    description: "The address at which other runners reach this one; joins a cluster."
  },
  SVC_RUNNER_PORT: { description: "The port at which other runners reach this one." },
  SVC_SHARD_GROUPS: {
    default: "",
    description: "The shard groups that this runner takes, by comma; empty takes the default one."
  },
  SMTP_URL: {
    description:
      "The mail server: smtps://user:password@host:465, or smtp://user:password@host:587 " +
      "(?requireTLS=true insists on STARTTLS). Absent, mails of development are shown at /dev/mail " +
      "and production sends none."
  },
  SVC_MAIL_FROM: {
    description:
      "The address that mails come from; the name beside it is the project's. Absent, no-reply at " +
      "the host of SVC_BASE_URL."
  },
  SVC_THROTTLES: {
    default: "on",
    description: "off lifts the request throttles, for benchmarks and tests."
  },
  SVC_SIGNUPS: {
    default: "closed",
    description:
      "Who may sign up as a developer: closed (the first one only), invite (with a code of " +
      "SVC_INVITE_CODES), open (anybody)."
  },
  SVC_INVITE_CODES: {
    default: "",
    description: "Codes that developers sign up with, by comma, each good for one account."
  },
  SVC_TRUSTED_PROXIES: {
    default: "",
    description:
      "Addresses and networks (10.0.0.0/8), by comma, whose X-Forwarded-For names the client."
  },
  SVC_TURN_URLS: {
    default: "",
    description:
      "STUN and TURN servers for peer-to-peer rooms, by comma: turn:turn.example.com:3478, " +
      "turns:turn.example.com:5349?transport=tcp, stun:stun.example.com:3478."
  },
  SVC_TURN_SECRET: {
    description:
      "The secret shared with the TURN servers (static-auth-secret of coturn), " +
      `${turn.secretMinCharacters} characters or more; players get credentials made from it.`
  },
  SVC_OAUTH_GOOGLE_URL: { description: elsewhere("Google") },
  SVC_OAUTH_DISCORD_URL: { description: elsewhere("Discord") },
  SVC_OAUTH_APPLE_URL: { description: elsewhere("Apple") },
  SVC_OAUTH_X_URL: { description: elsewhere("X") },
  SVC_FEATURES: {
    default: Object.keys(featureTable).join(","),
    description: "The features that this deployment offers, by comma; others cannot be turned on."
  },
  SVC_SAVE_MAX_BYTES: {
    default: String(saves.dataMaxBytes),
    description: "The most bytes of JSON that a cloud save may hold."
  },
  SVC_SAVES_PER_PLAYER: {
    default: String(saves.perPlayer),
    description: "The most cloud saves that a player may have."
  },
  SVC_METRICS_TOKEN: {
    description:
      `What Prometheus brings to GET /metrics as a bearer token, ${metricsTokenMinCharacters} ` +
      "characters or more. Absent, anybody may read in development, nobody in production."
  },
  SVC_LOG_LEVEL: {
    default: "info",
    description: "The least of what is logged: debug, info, warning, error."
  },
  SVC_LOG_FORMAT: {
    description: "json (one line an event; in production), or pretty (in development)."
  },
  SVC_LOG_REQUESTS: {
    default: "failed",
    description: "The requests that are logged: failed (answered with 5xx), or all."
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    description:
      "Where traces go: the OTLP/HTTP collector, http://localhost:4318. Absent, nothing is traced."
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    default: "http/protobuf",
    description: "How traces are written: http/protobuf or http/json."
  },
  OTEL_SERVICE_NAME: {
    default: "player-backend",
    description: "The name of the service in traces."
  },
  OTEL_TRACES_SAMPLER_ARG: {
    default: "1",
    description: "The share of traces that is recorded, from 0 to 1."
  },
  NODE_ENV: { default: "development", description: "production seeds nothing." }
} as const satisfies Record<string, Variable>
