/** The API page as HTML text, from the OpenAPI document. */
import { type Json, isJson, itemsOf, member, membersOf, textOf } from "#rpc/openapi/json"
import { paths } from "#rpc/paths"
import { anchorOf, escapeText, inline, markdown } from "./markup.ts"
import { commonErrorsBlock, operationBlock, type Operation } from "./operations.ts"
import { script, style } from "./style.ts"
import { schemaBlock } from "./types.ts"

const operationsOf = (document: Json): ReadonlyArray<Operation> =>
  membersOf(document["paths"]).flatMap(([path, methods]) =>
    membersOf(methods).flatMap(([method, operation]) =>
      isJson(operation) ? [{ method, path, operation }] : []
    )
  )

const linkTo = (anchor: string, text: string): string =>
  `<li><a href="#${anchor}">${escapeText(text)}</a></li>`

const navigation = (document: Json): string => {
  const groups = itemsOf(document["x-tagGroups"]).map((group) => {
    const links = itemsOf(member(group, "tags")).map((tag) =>
      linkTo(anchorOf(textOf(tag)), textOf(tag))
    )
    return `<b>${escapeText(textOf(member(group, "name")))}</b><ul>${links.join("")}</ul>`
  })
  const realtime = ["Frames", "Events", "Close codes"].map((text) => linkTo(anchorOf(text), text))
  return (
    `<nav aria-label="Contents"><p><a href="${paths.docs}">All documentation</a></p>` +
    `<input type="search" placeholder="Find an endpoint or schema" aria-label="Find">` +
    `<input type="checkbox" class="menu" aria-label="Show the contents"><div>` +
    `<p><a href="${paths.openapi}">OpenAPI document</a><a href="${paths.asyncapi}">AsyncAPI document</a></p>` +
    `<b>Realtime</b><ul>${realtime.join("")}</ul>${groups.join("")}` +
    `<ul>${linkTo("schemas", "Schemas")}</ul></div></nav>`
  )
}

const section = (tag: unknown, blocks: ReadonlyArray<string>): string => {
  const name = textOf(member(tag, "name"))
  return (
    `<section><h2 id="${anchorOf(name)}">${escapeText(name)}</h2>` +
    `<p>${inline(textOf(member(tag, "description")))}</p>${blocks.join("")}</section>`
  )
}

/** Returns the page. */
export const pageText = (document: Json): string => {
  const schemas = member(document["components"], "schemas")
  const operations = operationsOf(document)
  const sections = itemsOf(document["tags"]).map((tag) =>
    section(
      tag,
      operations
        .filter(({ operation }) => itemsOf(operation["tags"]).includes(member(tag, "name")))
        .map((operation) => operationBlock(operation, operations, schemas))
    )
  )
  const named = membersOf(schemas).toSorted(([left], [right]) => left.localeCompare(right))
  const description = textOf(member(document["info"], "description"))
  const [summary = "", ...reference] = description.split("\n")
  const title = escapeText(textOf(member(document["info"], "title")))
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>` +
    `<meta name="viewport" content="width=device-width"><style>${style}</style></head><body>` +
    `${navigation(document)}<main><h1>${title}</h1>` +
    `<p>${inline(summary)}</p>${commonErrorsBlock(schemas)}` +
    markdown(reference.join("\n")) +
    sections.join("") +
    section(
      {
        name: "Schemas",
        description: "Responses may gain fields; ignore those that you do not know."
      },
      named.map(([name, schema]) => schemaBlock(name, schema))
    ) +
    `</main><script>${script}</script></body></html>`
  )
}
