/**
 * Schema of the environment config document, `svc.config.json`. Decoding rejects unknown fields, fills
 * in every default and reports all issues at once, each with its JSON path. Rules between fields are
 * checked after the fields themselves are valid.
 */
import { Result, Schema, SchemaIssue } from "effect"
import { InvalidConfig, type Issue } from "../errors/codes.ts"
import { Auth } from "./auth.ts"
import { Features } from "./features.ts"
import { choice, optional, section, string, toggle, withDefault } from "./fields.ts"
import { Multiplayer } from "./multiplayer.ts"
import { Web } from "./origins.ts"
import { jsonPath } from "./paths.ts"
import { Share } from "./share.ts"
import { Integrity, Stats } from "./stats.ts"
import { TimeZone } from "./time-zone.ts"

const News = section("The news opt-in box on email sign-up screens.", {
  optIn: toggle("Offer the box; it is never shown in apps for kids.", true)
})

/** The whole document. The decoded form has every section and every default. */
export const EnvironmentConfig = section("Master data of one environment.", {
  $schema: Schema.optionalKey(string("For editors; ignored.")),
  version: withDefault(
    Schema.Literal(1).annotate({
      message: "must be 1",
      description: "The format version.",
      default: 1
    }),
    1
  ),
  resetTimeZone: withDefault(TimeZone, "UTC"),
  features: optional(Features),
  stats: Stats,
  multiplayer: optional(Multiplayer),
  auth: optional(Auth),
  web: optional(Web),
  share: optional(Share),
  audience: choice(
    "kids: every user counts as under 13; mixed: users of unknown age do until they declare it.",
    ["general", "mixed", "kids"]
  ),
  integrity: optional(Integrity),
  svcNews: optional(News)
})
export type EnvironmentConfig = typeof EnvironmentConfig.Type

const decode = Schema.decodeUnknownResult(EnvironmentConfig, {
  errors: "all",
  onExcessProperty: "error"
})

/**
 * Decodes a document that a push has validated. During an upgrade a newer release may have stored it,
 * so fields that this release does not know are ignored.
 */
export const decodeStoredConfig = Schema.decodeUnknownEffect(EnvironmentConfig)

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    issue._tag === "MissingKey" ? "is required" : SchemaIssue.defaultLeafHook(issue)
})

const issueText = ({ path, message }: Issue) => `${path === "" ? "the config" : path}: ${message}`

const issuesOf = (error: Schema.SchemaError): ReadonlyArray<Issue> => {
  const issues = format(error.issue).issues.map(({ path = [], message }) => ({
    path: jsonPath(path.map((segment) => (typeof segment === "object" ? segment.key : segment))),
    message
  }))
  // Two checks of one field with the same message are one issue.
  return Array.from(new Map(issues.map((issue) => [issueText(issue), issue])).values())
}

/** Decodes a raw document; fails with all its issues. */
export const decodeConfig = (document: unknown): Result.Result<EnvironmentConfig, InvalidConfig> =>
  Result.mapError(decode(document), (error) => {
    const issues = issuesOf(error)
    return new InvalidConfig({ message: issues.map(issueText).join("; "), details: { issues } })
  })
