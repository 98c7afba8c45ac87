/** Sections `stats` and `integrity.stats` of the environment config. */
import { Schema } from "effect"
import { choice, integer, list, optional, section, string } from "./fields.ts"
import { configLimits } from "./limits.ts"
import { isLoopback } from "./origins.ts"
import { key, text } from "./text.ts"

const number = (description: string) =>
  Schema.Number.annotate({ message: "must be a number", description }).check(
    Schema.isFinite({ message: "must be a number" })
  )

/** A stat that players may report. */
const Stat = section("A stat.", {
  key: key("Names the stat in reports."),
  title: text("The stat's name for people."),
  aggregation: choice("How reports combine.", ["sum", "max", "min", "latest"]),
  maxPerSubmit: Schema.optionalKey(
    number("The largest value accepted in one report.").check(
      Schema.isGreaterThan(0, { message: "must be greater than 0" })
    )
  )
})

/** Section `stats`. */
export const Stats = list("The stats that players may report.", Stat, configLimits.statsMax)

const Rule = section("The range of values that a stat may take in a report.", {
  stat: key("The key of a stat."),
  min: Schema.optionalKey(number("The smallest value allowed.")),
  max: Schema.optionalKey(number("The largest value allowed."))
})

/**
 * Whether the URL may be one of a webhook: `https`, or `http` for a server on the developer's
 * machine.
 */
const isWebhookUrl = (text: string): boolean => {
  const url = URL.parse(text)
  if (url === null || url.username !== "" || url.password !== "") return false
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname))
}

const Webhook = section("Asks the developer's server before a stat is stored.", {
  url: Schema.optionalKey(
    string("An https URL, or in development one of http://localhost.").check(
      Schema.makeFilter(isWebhookUrl, {
        message:
          "must be an https URL without user name and password (in development, http://localhost)"
      })
    )
  ),
  timeoutMs: integer("Timeout of the developer's server, in milliseconds.", {
    minimum: configLimits.webhookTimeoutMillisMin,
    maximum: configLimits.webhookTimeoutMillisMax,
    default: configLimits.webhookTimeoutMillisDefault
  }),
  onFailure: choice("What happens to values when the developer's server is down or slow.", [
    "accept",
    "reject"
  ])
})

/** Section `integrity`. */
export const Integrity = section("Checks against cheating.", {
  stats: optional(
    section("Checks that run before a stat is stored.", {
      rules: list(
        "The allowed value ranges of stats; they need features.statsVerification.",
        Rule,
        configLimits.integrityRulesMax
      ),
      maxSubmitsPerMinute: integer("Reports per player per minute; always applies.", {
        minimum: 1,
        maximum: configLimits.submitsPerMinuteMax,
        default: configLimits.submitsPerMinuteDefault
      }),
      webhook: optional(Webhook)
    })
  )
})
