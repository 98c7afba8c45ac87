/** Operations of the OpenAPI document on the API page: callers, parameters, body, responses, `curl`. */
import { itemsOf, type Json, member, membersOf, refName, textOf } from "#rpc/openapi/json"
import { escapeHtml } from "#server/platform/mail/templates"
import { inline } from "./markup.ts"
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
  const shown = schemes.map((scheme) => `<code>${escapeHtml(scheme)}</code>`)
  return `<p>${shown.length === 0 ? "Needs no key." : shown.join(" and ")}</p>`
}

const parameters = (operation: Json): string => {
  const rows = itemsOf(operation["parameters"]).map((parameter) => {
    const optional = member(parameter, "required") === true ? "" : "?"
    const cells = [
      `<code>${escapeHtml(textOf(member(parameter, "name")))}${optional}</code>`,
      textOf(member(parameter, "in")),
      `<code>${typeText(member(parameter, "schema"))}</code>`,
      inline(textOf(member(parameter, "description")))
    ]
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`
  })
  return rows.length === 0
    ? ""
    : `<h4>Parameters</h4><div class="wide"><table>${rows.join("")}</table></div>`
}

const contentOf = (value: unknown): readonly [type: string, schema: unknown] | undefined => {
  const [first] = membersOf(member(value, "content"))
  return first === undefined ? undefined : [first[0], member(first[1], "schema")]
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
  return `<pre>${escapeHtml(lines.join(" \\\n  "))}</pre>`
}

const codeLink = (name: string, schemas: unknown): string => {
  const error = member(member(member(schemas, name), "properties"), "error")
  const code = itemsOf(member(member(member(error, "properties"), "code"), "enum"))[0]
  return `<a href="#${schemaAnchor(name)}">${escapeHtml(textOf(code) || name)}</a>`
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

/** What any request may be answered. */
export const commonErrorsBlock = (schemas: unknown): string => {
  const links = Array.from(commonErrors, (name) => codeLink(name, schemas))
  return `<p>Any request may also fail with ${links.join(", ")}.</p>`
}

const responseRow = (status: string, response: unknown, schemas: unknown): string => {
  const [, schema] = contentOf(response) ?? []
  const either = itemsOf(member(schema, "anyOf"))
  const all = (either.length === 0 ? [schema] : either).flatMap((one) => refName(one) ?? [])
  const failed = !status.startsWith("2")
  const names = failed ? all.filter((name) => !commonErrors.has(name)) : all
  if (failed && names.length === 0 && all.length > 0) return ""
  const shown =
    failed && names.length > 0
      ? names.map((name) => codeLink(name, schemas)).join(", ")
      : `${schema === undefined ? "" : `${typeText(schema)}: `}${inline(textOf(member(response, "description")))}`
  return `<tr><td>${status}</td><td>${shown}</td></tr>`
}

/** One endpoint, folded. */
export const operationBlock = (endpoint: Operation, schemas: unknown): string => {
  const { method, operation, path } = endpoint
  const [, body] = contentOf(operation["requestBody"]) ?? []
  const responses = membersOf(operation["responses"]).map(([status, response]) =>
    responseRow(status, response, schemas)
  )
  const description = textOf(operation["description"])
  return (
    `<details id="${textOf(operation["operationId"])}" class="op"><summary>` +
    `<b class="${method}">${method.toUpperCase()}</b> <code>${escapeHtml(path)}</code> ` +
    `<span>${inline(textOf(operation["summary"]))}</span></summary>` +
    (description === "" ? "" : `<p>${inline(description)}</p>`) +
    callers(operation) +
    parameters(operation) +
    (body === undefined ? "" : `<p>Body: ${typeText(body)}</p>`) +
    curl(endpoint, schemas) +
    `<h4>Responses</h4><div class="wide"><table>${responses.join("")}</table></div></details>`
  )
}
