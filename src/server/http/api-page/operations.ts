/** Operations of the OpenAPI document on the API page: callers, parameters, body, responses, `curl`. */
import { itemsOf, type Json, member, membersOf, refName, textOf } from "#rpc/openapi/json"
import { escapeText, inline } from "./markup.ts"
import { schemaAnchor, typeText } from "./types.ts"

/** An endpoint of the document. */
export interface Operation {
  readonly method: string
  readonly path: string
  readonly operation: Json
}

const headers: Readonly<Record<string, string>> = {
  publishableKey: "X-Svc-Key: pk_...",
  publishableKeyInQuery: "?key=pk_...",
  secretKey: "X-Svc-Key: sk_...",
  playerToken: "Authorization: Bearer <access token>",
  developerSession: "Authorization: Bearer kds_..."
}

const schemesOf = (operation: Json): ReadonlyArray<string> =>
  itemsOf(operation["security"]).flatMap((requirement) =>
    membersOf(requirement).map(([scheme]) => scheme)
  )

const callers = (operation: Json): string => {
  const schemes = schemesOf(operation).map((scheme) => headers[scheme] ?? scheme)
  const shown = schemes.map((scheme) => `<code>${escapeText(scheme)}</code>`)
  return `<p>${shown.length === 0 ? "Needs no key." : shown.join(" and ")}</p>`
}

const parameters = (operation: Json): string => {
  const rows = itemsOf(operation["parameters"]).map((parameter) => {
    const optional = member(parameter, "required") === true ? "" : "?"
    const cells = [
      `<code>${escapeText(textOf(member(parameter, "name")))}${optional}</code>`,
      textOf(member(parameter, "in")),
      `<code>${typeText(member(parameter, "schema"))}</code>`,
      inline(textOf(member(parameter, "description")))
    ]
    return `<tr>${cells.map((cell) => `<td>${cell}`).join("")}`
  })
  return rows.length === 0
    ? ""
    : `<h3>Parameters</h3><div class="wide"><table>${rows.join("")}</table></div>`
}

const contentOf = (value: unknown): readonly [type: string, schema: unknown] | undefined => {
  const [first] = membersOf(member(value, "content"))
  return first === undefined ? undefined : [first[0], member(first[1], "schema")]
}

/** The names of the schemas of a response. */
const refsOf = (response: unknown): ReadonlyArray<string> => {
  const [, schema] = contentOf(response) ?? []
  const either = itemsOf(member(schema, "anyOf"))
  return (either.length === 0 ? [schema] : either).flatMap((one) => refName(one) ?? [])
}

const curl = ({ method, operation, path }: Operation, schemas: unknown): string => {
  const lines = [`curl -X ${method.toUpperCase()} "$URL${path}"`]
  for (const scheme of schemesOf(operation)) {
    if (scheme !== "publishableKeyInQuery") lines.push(`-H '${headers[scheme] ?? scheme}'`)
  }
  const [type, schema] = contentOf(operation["requestBody"]) ?? []
  if (type === "application/json") {
    const named = member(schemas, refName(schema) ?? "")
    const example = itemsOf(member(named, "examples"))[0] ?? {}
    const text = JSON.stringify(example).replaceAll("'", "\\u0027")
    lines.push("-H 'Content-Type: application/json'", `-d '${text}'`)
  }
  return `<pre>${escapeText(lines.join(" \\\n  "))}</pre>`
}

const codeLink = (name: string, schemas: unknown): string => {
  const error = member(member(member(schemas, name), "properties"), "error")
  const code = itemsOf(member(member(member(error, "properties"), "code"), "enum"))[0]
  return `<a href="#${schemaAnchor(name)}">${escapeText(textOf(code) || name)}</a>`
}

/** Errors of any request: the page lists them once. */
const commonErrors: ReadonlySet<string> = new Set([
  "InvalidRequestError",
  "InvalidJsonError",
  "PayloadTooLargeError",
  "UnsupportedMediaTypeError",
  "RateLimitedError",
  "InternalError",
  "UnavailableError"
])

/** Errors of any request with a key. */
const keyErrors: ReadonlySet<string> = new Set(["InvalidKeyError", "OriginNotAllowedError"])

const isCommon = (name: string): boolean => commonErrors.has(name) || keyErrors.has(name)

/** Returns the block of the errors that any request may get. */
export const commonErrorsBlock = (schemas: unknown): string => {
  const links = (names: ReadonlySet<string>): string =>
    Array.from(names, (name) => codeLink(name, schemas)).join(", ")
  return (
    `<p>Any request may also fail with ${links(commonErrors)}, and one with a key with ` +
    `${links(keyErrors)}.</p>`
  )
}

// HTML needs no end tags of cells and rows, of which the page has thousands.
const responseRow = (status: string, response: unknown, schemas: unknown): string => {
  const [, schema] = contentOf(response) ?? []
  const all = refsOf(response)
  const failed = !status.startsWith("2")
  const names = failed ? all.filter((name) => !isCommon(name)) : all
  if (failed && names.length === 0 && all.length > 0) return ""
  const shown =
    failed && names.length > 0
      ? names.map((name) => codeLink(name, schemas)).join(", ")
      : `${schema === undefined ? "" : `${typeText(schema)}: `}${inline(textOf(member(response, "description")))}`
  return `<tr><td>${status}<td>${shown}`
}

const errorsOf = (operation: Json): ReadonlyArray<string> =>
  membersOf(operation["responses"])
    .filter(([status]) => !status.startsWith("2"))
    .flatMap(([, response]) => refsOf(response))

const projectPath = "/v1/projects/{projectId}/environments/{env}"

/** Finds the endpoint for a secret key that does the same as this one for a developer. */
const sameForKey = ({ method, path }: Operation, all: ReadonlyArray<Operation>) => {
  if (!path.startsWith(projectPath)) return undefined
  const rest = path.slice(projectPath.length)
  return all.find(
    (other) =>
      other.method === method &&
      (other.path === `/v1${rest}` || other.path === `/v1/admin${rest}`) &&
      schemesOf(other.operation).includes("secretKey")
  )
}

/** Returns what an endpoint for developers adds to the one for a secret key. */
const difference = (endpoint: Json, forKey: Operation, schemas: unknown): string => {
  const known = new Set(errorsOf(forKey.operation))
  const own = errorsOf(endpoint).filter((name) => !known.has(name) && !isCommon(name))
  const links = Array.from(new Set(own), (name) => codeLink(name, schemas)).join(", ")
  const path = escapeText(forKey.path)
  return (
    `<p>Like <a href="#${textOf(forKey.operation["operationId"])}"><code>${path}</code></a>.` +
    (links === "" ? "</p>" : ` It may also fail with ${links}.</p>`)
  )
}

const details = (endpoint: Operation, schemas: unknown): string => {
  const { operation } = endpoint
  const [, body] = contentOf(operation["requestBody"]) ?? []
  const responses = membersOf(operation["responses"]).map(([status, response]) =>
    responseRow(status, response, schemas)
  )
  const description = textOf(operation["description"])
  return (
    (description === "" ? "" : `<p>${inline(description)}</p>`) +
    parameters(operation) +
    (body === undefined ? "" : `<p>Body: ${typeText(body)}</p>`) +
    curl(endpoint, schemas) +
    `<h3>Responses</h3><div class="wide"><table>${responses.join("")}</table></div>`
  )
}

/** One endpoint, folded. `all` are those of the page. */
export const operationBlock = (
  endpoint: Operation,
  all: ReadonlyArray<Operation>,
  schemas: unknown
): string => {
  const { method, operation, path } = endpoint
  const forKey = sameForKey(endpoint, all)
  return (
    `<details id="${textOf(operation["operationId"])}" class="op"><summary>` +
    `<b class="${method}">${method.toUpperCase()}</b> <code>${escapeText(path)}</code> ` +
    `<span>${inline(textOf(operation["summary"]))}</span></summary>` +
    callers(operation) +
    (forKey === undefined ? details(endpoint, schemas) : difference(operation, forKey, schemas)) +
    "</details>"
  )
}
