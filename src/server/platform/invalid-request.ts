/** The error 400 `invalid_request`, with every issue of a schema and its path. */
import { SchemaIssue } from "effect"
import { jsonPath } from "#rpc/config-document/paths"
import { InvalidRequest } from "#rpc/errors/codes"

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** The error with one issue. */
export const invalidField = (path: string, message: string): InvalidRequest =>
  new InvalidRequest({ details: { issues: [{ path, message }] } })

/** The error with every issue; `slot` is the prefix of their paths. */
export const invalidRequest = (
  issue: SchemaIssue.Issue,
  slot: ReadonlyArray<string> = []
): InvalidRequest => {
  const issues = format(issue).issues.map(({ message, path = [] }) => {
    const keys = path.map((segment) => (typeof segment === "object" ? segment.key : segment))
    const where = jsonPath([...slot, ...keys])
    return { path: where === "" ? "body" : where, message }
  })
  return new InvalidRequest({ details: { issues } })
}
