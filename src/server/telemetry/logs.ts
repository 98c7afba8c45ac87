/**
 * What the service says of itself: in production one line of JSON an event, in development in colours.
 *
 *     { "time", "level", "message", "detail"?, "cause"?, "requestId"?, "traceId"?, ... }
 *
 * Nothing secret is logged by intent; what a fault carries along (an URL with a password, a token in a
 * message) is blotted out of every line.
 */
import { Cause, Effect, Formatter, Layer, Logger, References } from "effect"
import { Settings } from "#server/platform/settings/settings"

/** Keys and tokens of ours, JWTs, what follows `Bearer` or `Basic`, and passwords of URLs. */
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

/** The text without what only its owner may know. */
export const redactSecrets = (text: string): string => text.replace(secrets, "<secret>")

const textOf = (part: unknown): unknown =>
  part instanceof Error ? Cause.pretty(Cause.die(part)) : part

/** One event as an object. */
const lineOf = Logger.make(({ cause, date, fiber, logLevel, message }) => {
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
  Logger.map(lineOf, (line) => redactSecrets(Formatter.formatJson(line)))
)

/** The loggers as the settings want them. */
export const LogsLive = Layer.unwrap(
  Effect.map(Settings, ({ logs: { format, level } }) =>
    Layer.mergeAll(
      Logger.layer([format === "json" ? json : Logger.consolePretty()]),
      Layer.succeed(References.MinimumLogLevel, level)
    )
  )
)
