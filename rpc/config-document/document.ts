/**
 * Schema of the environment config document, `svc.config.json`. Decoding rejects unknown fields and
 * fills in every default. It reports all issues at once, each with its JSON path: those of single
 * fields, and those of `rules.ts`.
 */
import { Result, Schema, SchemaAST, SchemaIssue } from "effect"
import { InvalidConfig, type Issue } from "../errors/codes.ts"
import { Auth } from "./auth.ts"
import { withFewOthers, withShortLists } from "./excerpt.ts"
import { Features } from "./features.ts"
import { choice, optional, section, string, toggle, withDefault } from "./fields.ts"
import { configLimits } from "./limits.ts"
import { Multiplayer } from "./multiplayer.ts"
import { Web } from "./origins.ts"
import { jsonPath } from "./paths.ts"
import { ruleIssues } from "./rules.ts"
import { Share } from "./share.ts"
import { Integrity, Stats } from "./stats.ts"
import { TimeZone } from "./time-zone.ts"
import { withSuggestion } from "./unknown-keys.ts"

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

const decode = Schema.decodeUnknownResult(EnvironmentConfig, { onExcessProperty: "error" })
const decodeAll = Schema.decodeUnknownResult(EnvironmentConfig, {
  errors: "all",
  onExcessProperty: "error"
})

/** Collects the names of all fields of the document, at any depth. */
const addNames = (ast: SchemaAST.AST, names: Set<string>): Set<string> => {
  if (SchemaAST.isObjects(ast)) {
    for (const { name, type } of ast.propertySignatures) {
      names.add(String(name))
      addNames(type, names)
    }
  } else if (SchemaAST.isArrays(ast)) {
    for (const type of [...ast.elements, ...ast.rest]) addNames(type, names)
  } else if (SchemaAST.isUnion(ast)) {
    for (const type of ast.types) addNames(type, names)
  }
  return names
}
const fieldNames: ReadonlySet<string> = addNames(
  SchemaAST.toEncoded(EnvironmentConfig.ast),
  new Set()
)

/**
 * Decodes a document that a push has validated. During an upgrade a newer release may have stored it,
 * so fields that this release does not know are ignored.
 */
export const decodeStoredConfig = Schema.decodeUnknownEffect(EnvironmentConfig)

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    issue._tag === "MissingKey" ? "is required" : SchemaIssue.defaultLeafHook(issue)
})

const pathMaxCharacters = 256

const issueText = ({ path, message }: Issue) => `${path === "" ? "the config" : path}: ${message}`

const issuesOf = (error: Schema.SchemaError): ReadonlyArray<Issue> =>
  format(error.issue).issues.map(({ path = [], message }) => ({
    path: jsonPath(path.map((segment) => (typeof segment === "object" ? segment.key : segment))),
    message
  }))

/** Sections in the order in which their issues are listed; unknown ones come first. */
const sections = Object.keys(EnvironmentConfig.fields)
const positionOf = ({ path }: Issue): number => sections.indexOf(/^[\w$]*/.exec(path)?.[0] ?? "")

/** A path that is safe to send back: a name in it may be as long as the document. */
const shortPath = ({ message, path }: Issue): Issue => ({
  path: path.length > pathMaxCharacters ? `${path.slice(0, pathMaxCharacters)}...` : path,
  message
})

/**
 * The error with the issues of a document, at most {@link configLimits.issuesMax}. Two checks of one field with
 * one message are one issue.
 */
export const invalidConfig = (all: ReadonlyArray<Issue>): InvalidConfig => {
  const distinct = Array.from(new Map(all.map((issue) => [issueText(issue), issue])).values())
  distinct.sort((a, b) => positionOf(a) - positionOf(b))
  const issues = distinct
    .slice(0, configLimits.issuesMax)
    .map((issue) => shortPath(withSuggestion(issue)))
  if (distinct.length > issues.length) {
    issues.push({ path: "", message: "has more problems: correct these first" })
  }
  return new InvalidConfig({ message: issues.map(issueText).join("; "), details: { issues } })
}

/** Decodes a raw document; fails with all its issues. Some rules hold in `production` only. */
export const decodeConfig = (
  document: unknown,
  { production = false }: { readonly production?: boolean } = {}
): Result.Result<EnvironmentConfig, InvalidConfig> => {
  const short = withShortLists(document)
  const decoded = decode(short)
  if (Result.isFailure(decoded)) {
    const excerpt = withFewOthers(short, fieldNames, configLimits.issuesMax + 1)
    const all = decodeAll(excerpt)
    const issues = Result.isFailure(all) ? issuesOf(all.failure) : issuesOf(decoded.failure)
    return Result.fail(invalidConfig([...issues, ...ruleIssues(excerpt, production)]))
  }
  const issues = ruleIssues(document, production)
  return issues.length === 0 ? Result.succeed(decoded.success) : Result.fail(invalidConfig(issues))
}
