/**
 * Log output: JSON, one line per event, in production; coloured text in development.
 *
 *     { "time", "level", "message", "detail"?, "cause"?, "requestId"?, "traceId"?, ... }
 *
 * The service logs no secrets on purpose. Secrets inside error messages (a URL with a password, a token)
 * are redacted from every line.
 */
import { Cause, Effect, Formatter, Layer, Logger, References } from "effect"
import { Settings } from "#server/platform/settings/settings"

/** The service's keys and tokens, JWTs, `Bearer` and `Basic` credentials, passwords in URLs. */
const secrets = new RegExp(
  [
    /\b(?:pk|sk|kds|rt)_[\w.-]{16,}/,
    /\beyJ[\w-]+\.[\w-]+\.[\w-]*/,
    /(?<=\b(?:Bearer|Basic)\s)[^\s"\\]+/,
    /(?<=:\/\/[^\s/:@"]*:)[^\s/@"]+(?=@)/
  ]
    .map(({ source }) => source)
    .join("|"),
  "gi"
)

/** Replaces every secret in the text by `<secret>`. */
export const redactSecrets = (text: string): string => text.replace(secrets, "<secret>")

const textOf = (part: unknown): unknown =>
  part instanceof Error ? Cause.pretty(Cause.die(part)) : part

/** One event as an object. */
const eventOf = Logger.make(({ cause, date, fiber, logLevel, message }) => {
  const [first, ...rest] = Array.isArray(message) ? message : [message]
  const { span } = fiber.cache
  return {
    time: date.toISOString(),
    level: logLevel.toLowerCase(),
    message: textOf(first),
    ...(rest.length === 0 ? {} : { detail: rest.map(textOf) }),
    ...(cause.reasons.length === 0 ? {} : { cause: Cause.pretty(cause) }),
    ...fiber.getRef(References.CurrentLogAnnotations),
    ...(span?.sampled === true ? { traceId: span.traceId } : {})
  }
})

const json = Logger.withConsoleLog(
  Logger.map(eventOf, (event) => redactSecrets(Formatter.formatJson(event)))
)

/** Loggers in the format and level of the settings. */
export const LogsLive = Layer.unwrap(
  Effect.map(Settings, ({ logs: { format, level } }) =>
    Layer.mergeAll(
      Logger.layer([format === "json" ? json : Logger.consolePretty()]),
      Layer.succeed(References.MinimumLogLevel, level)
    )
  )
)
