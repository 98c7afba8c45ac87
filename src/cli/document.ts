/**
 * Parses and validates the text of a config file, with the position of every value. The rules are
 * those of the service (`rpc/config-document`), so a file that is valid here is valid there. Only
 * this parser finds syntax errors and duplicate names, in the text.
 */
import { parse, type AnyNode } from "@humanwhocodes/momoa"
import { Result, type Schema } from "effect"
import { decodeConfig, type EnvironmentConfig } from "#rpc/config-document/document"
import { configLimits } from "#rpc/config-document/limits"
import { memberPath } from "#rpc/config-document/paths"
import { configWarnings } from "#rpc/config-document/warnings"
import type { Issue } from "#rpc/errors/codes"
import type { LocatedIssue } from "./failures.ts"

interface Position {
  readonly line: number
  readonly column: number
}

/** A config file with valid JSON syntax. */
export interface ConfigText {
  readonly document: Schema.Json
  /** Adds the position of a JSON path, or of its nearest existing parent. */
  readonly place: (issue: Issue) => LocatedIssue
  /** Duplicate names of an object, which the service refuses. */
  readonly repeated: ReadonlyArray<LocatedIssue>
}

/** A valid config file. */
export interface ValidConfig {
  readonly config: EnvironmentConfig
  readonly warnings: ReadonlyArray<LocatedIssue>
}

const start: Position = { line: 1, column: 1 }

/** The last segment of a JSON path: `.name`, `[0]`, `["pt-BR"]`, or a plain name. */
const lastStep = /(?:\.?[A-Za-z_$][\w$]*|\[\d+\]|\["(?:[^"\\]|\\.)*"\])$/

interface SourceMap {
  readonly positions: Map<string, Position>
  readonly repeated: Array<LocatedIssue>
}

const visit = (node: AnyNode, path: string, at: Position, sourceMap: SourceMap): void => {
  sourceMap.positions.set(path, { line: at.line, column: at.column })
  if (node.type === "Array") {
    node.elements.forEach(({ loc, value }, index) =>
      visit(value, memberPath(path, index), loc.start, sourceMap)
    )
  }
  if (node.type !== "Object") return
  const names = new Set<string>()
  for (const { loc, name, value } of node.members) {
    const key = name.type === "String" ? name.value : name.name
    const member = memberPath(path, key)
    const { column, line } = loc.start
    const message = "is a duplicate: remove one of the two"
    if (names.has(key)) sourceMap.repeated.push({ path: member, message, line, column })
    names.add(key)
    visit(value, member, loc.start, sourceMap)
  }
}

const errorText = (error: unknown): string => (error instanceof Error ? error.message : "")

/** `JSON.parse` has the better message, but often no position; the second parser adds it. */
const syntaxIssue = (text: string, error: unknown): LocatedIssue => {
  const errorMessage = errorText(error)
  const message = errorMessage.replace(/(?:, ".*" is not valid JSON| in JSON at position .*)$/s, "")
  const locationInMessage = /\(line (\d+) column (\d+)\)/.exec(errorMessage)
  const position = (): Position => {
    if (locationInMessage !== null)
      return { line: Number(locationInMessage[1]), column: Number(locationInMessage[2]) }
    try {
      parse(text)
      return start
    } catch (failure) {
      const { column, line } = Object(failure)
      return typeof line === "number" && typeof column === "number" ? { line, column } : start
    }
  }
  return { path: "", message: `is not JSON: ${message}`, ...position() }
}

const sourceMapOf = (text: string): SourceMap => {
  const places: SourceMap = { positions: new Map(), repeated: [] }
  const { body } = parse(text)
  visit(body, "", body.loc.start, places)
  return places
}

/** Parses the text of a config file. */
export const parseConfig = (source: string): Result.Result<ConfigText, LocatedIssue> => {
  // Some editors start UTF-8 files with a byte order mark, which is not JSON.
  const text = source.replace(/^\uFEFF/, "")
  return Result.try({
    try: () => {
      const document: Schema.Json = JSON.parse(text)
      const { positions, repeated } = sourceMapOf(text)
      const position = (path: string): Position => {
        const known = positions.get(path)
        if (known !== undefined) return known
        const outer = path.replace(lastStep, "")
        return outer === path ? start : position(outer)
      }
      const place = (issue: Issue): LocatedIssue => ({ ...issue, ...position(issue.path) })
      return { document, place, repeated }
    },
    catch: (error) => syntaxIssue(text, error)
  })
}

/** Whether a JSON value is an object. */
export const isJsonObject = (value: Schema.Json | undefined): value is Schema.JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The document without `$schema`, which is for editors and never sent to the service. */
export const withoutSchema = (document: Schema.Json): Schema.Json => {
  if (!isJsonObject(document)) return document
  const { $schema: _, ...rest } = document
  return rest
}

/** Validates a config by every rule that needs no service. */
export const validateConfig = (
  text: ConfigText
): Result.Result<ValidConfig, ReadonlyArray<LocatedIssue>> => {
  const { document, place, repeated } = text
  const bytes = Buffer.byteLength(JSON.stringify(withoutSchema(document)))
  if (bytes > configLimits.documentMaxBytes) {
    const message = `is too large: ${bytes} bytes, the limit is ${configLimits.documentMaxBytes}`
    return Result.fail([place({ path: "", message })])
  }
  return decodeConfig(document).pipe(
    Result.mapError(({ details }) => [...repeated, ...details.issues.map(place)]),
    Result.flatMap((config) =>
      repeated.length > 0
        ? Result.fail(repeated)
        : Result.succeed({ config, warnings: configWarnings(config, document).map(place) })
    )
  )
}
