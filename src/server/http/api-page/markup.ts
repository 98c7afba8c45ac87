/** HTML of the API page: escaping, and the Markdown that descriptions use. */

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" }

/** Text between tags. Quotes need no escape there, and the page has thousands. */
export const escapeText = (text: string): string =>
  text.replaceAll(/[&<>]/g, (character) => entities[character] ?? character)

/** Text with its code spans. */
export const inline = (text: string): string =>
  escapeText(text).replace(/`([^`]+)`/g, "<code>$1</code>")

const cells = (row: string): ReadonlyArray<string> =>
  row
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => inline(cell.trim()))

const table = (block: string): string => {
  const [head = "", , ...rows] = block.split("\n")
  const header = cells(head).map((cell) => `<th>${cell}</th>`)
  const body = rows.map(
    (row) =>
      `<tr>${cells(row)
        .map((cell) => `<td>${cell}</td>`)
        .join("")}</tr>`
  )
  return `<div class="wide" tabindex="0"><table><tr>${header.join("")}</tr>${body.join("")}</table></div>`
}

const heading = (level: number, text: string): string =>
  `<h${level} id="${anchorOf(text)}">${inline(text)}</h${level}>`

/** The id by which a link finds a heading. */
export const anchorOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")

/** Headings, tables and paragraphs of Markdown. */
export const markdown = (text: string): string =>
  text
    .trim()
    .split(/\n{2,}|\n(?=#)/)
    .map((block) => {
      const [, marks = "", title = ""] = /^(#+) (.*)$/.exec(block) ?? []
      if (marks !== "") return heading(marks.length, title)
      return block.startsWith("|") ? table(block) : `<p>${inline(block)}</p>`
    })
    .join("")
