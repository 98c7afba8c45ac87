/** Code samples of the documentation: the fenced blocks of each language, with their place. */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The repository. */
export const root = join(import.meta.dirname, "../../..")

/** A fenced block. */
export interface Sample {
  /** `docs/guides/rooms.md:11` */
  readonly place: string
  readonly text: string
}

const blockForm = /^( *)```(\w+)\n([^]*?)^ *```$/gm

/** The blocks of these languages on all pages. */
export const samplesOf = (...languages: ReadonlyArray<string>): ReadonlyArray<Sample> =>
  globSync(["README.md", "docs/**/*.md"], { cwd: root })
    .toSorted()
    .flatMap((page) => {
      const content = readFileSync(join(root, page), "utf8")
      return Array.from(content.matchAll(blockForm), (match) => {
        const [, indent = "", language = "", text = ""] = match
        const line = content.slice(0, match.index).split("\n").length
        const lines = text.split("\n").map((row) => row.slice(indent.length))
        return { language, place: `${page}:${line}`, text: lines.join("\n") }
      })
    })
    .filter(({ language }) => languages.includes(language))

/** What samples use without declaring it. Other undeclared names are of the reader's own game. */
export const globals = `
import type { Client, Room } from "../../src/client/client.ts"
declare global {
  const client: Client
  const room: Room
  const friend: { readonly id: string }
  const me: { x: number; y: number }
  const baseUrl: string
  const email: string
  const password: string
  const next: string
  const secret: string
  const rawBody: string
  const request: { readonly headers: Readonly<Record<string, string>> }
  const input: HTMLInputElement
  const hint: HTMLElement
  var svcConfig: { readonly baseUrl: string; readonly publishableKey: string }
  const { createHmac, timingSafeEqual }: typeof import("node:crypto")
  const { createClient }: typeof import("../../src/client/client.ts")
  interface ImportMeta { readonly env: Readonly<Record<string, string>> }
}
`
