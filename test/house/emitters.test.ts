/** The house rule about emitters of errors, with examples that it must refuse. */
import { describe, it } from "@effect/vitest"
import { emitters } from "./emitters.ts"
import { refuses, source } from "./examples.ts"
import { parse } from "./source.ts"
import { readTree } from "./tree.ts"

const sources = readTree()
  .filter(({ path }) => path.startsWith("src/") && /\.tsx?$/.test(path))
  .map(parse)

describe("emitters of errors", () => {
  const path = "src/server/links/pass.ts"
  const problem = `${path}:2 request without .on("error", ...) in the function that calls it`
  const passes = (body: string, imported = "request") =>
    emitters(source(path, `import { ${imported} } from "node:http"\n${body}`))

  it("asks for a listener in the function that makes an emitter", () => {
    refuses(passes("export const pass = () => request(to)"), problem)
    refuses(passes("const pass = () => { const sent = request(to); sent.end() }"), problem)
    refuses(
      passes(`const pass = (sent) => { sent = request(to); later(() => sent.end("error")) }`),
      problem
    )
    refuses(
      passes(`const pass = () => { const sent = request(to); other.on("error", f) }`),
      problem
    )
    refuses(
      passes(`const a = () => { const sent = request(to) }\nconst b = () => sent.on("error", f)`),
      problem
    )
    refuses(
      passes("const pass = () => { const sent = request(to); sent.once('error', f) }"),
      problem
    )
    refuses(passes("const pass = () => ask(to)", "request as ask"), problem)
    refuses(passes(`const pass = () => { const sent = request(to); sent.on("error", f) }`))
    refuses(passes(`const pass = () => request(to).on("response", g).on("error", f)`))
    refuses(passes(`class A { constructor() { this.#b = request(to); this.#b.on("error", f) } }`))
    refuses(
      passes(`const pass = () => { const a = b ? request(c) : request(d); a.on("error", f) }`)
    )
    refuses(passes("const pass = (request: Request) => request(to)", "type request"))
    const piped = `import { createGzip } from "node:zlib"
      const a = () => pipeline(from, createGzip(), to)
      const b = () => { const zip = createGzip(); return pipeline(from, zip, to) }`
    refuses(emitters(source(path, piped)))
    refuses(
      emitters(
        source(path, `import { createGzip } from "node:zlib"\nconst a = () => createGzip()`)
      ),
      `${path}:2 createGzip without .on("error", ...) in the function that calls it`
    )
    refuses(sources.flatMap(emitters))
  })
})
