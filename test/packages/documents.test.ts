/**
 * Foreign tools on the documents of the API: clients that `openapi-typescript`, `@hey-api/openapi-ts` and
 * `orval` generate compile and sign a guest in; AsyncAPI's parser accepts the document of the socket. The
 * tools come from the npm registry.
 */
import { cpSync } from "node:fs"
import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { inject } from "vitest"
import {
  consumerAt,
  hasConsumers,
  makeConsumer,
  needsRegistry,
  runConsumer
} from "../support/packages/consumers.ts"

const { baseUrl, key } = inject("service")

const rpc = join(import.meta.dirname, "../../rpc")

const tsconfig = JSON.stringify({
  compilerOptions: {
    strict: true,
    noUncheckedIndexedAccess: true,
    module: "nodenext",
    target: "es2023",
    lib: ["es2023", "dom", "dom.iterable"],
    types: [],
    outDir: "out"
  },
  files: ["program.ts"]
})

/** A folder with a document, and with a program. */
const makeFolder = (document: string, files: Readonly<Record<string, string>>): string => {
  const folder = makeConsumer({ "package.json": `{ "type": "module" }`, ...files })
  cpSync(join(rpc, document), join(folder, document))
  return folder
}

interface Generator {
  readonly command: ReadonlyArray<string>
  /** Matches all that it prints, so a warning does not pass. */
  readonly prints: RegExp
  readonly files?: Readonly<Record<string, string>>
  readonly program: string
}

const generators: Readonly<Record<string, Generator>> = {
  "openapi-typescript": {
    command: ["openapi-typescript", "openapi.json", "-o", "schema.d.ts"],
    prints: /^✨ openapi-typescript [\d.]+\n🚀 openapi\.json → schema\.d\.ts \[[^\]]+\]$/,
    program: `
import createClient from "openapi-fetch"
import type { paths } from "./schema.js"
declare const process: { argv: [string, string, string, string] }
const [, , baseUrl, key] = process.argv
const client = createClient<paths>({ baseUrl, headers: { "X-Svc-Key": key } })
const { data, error } = await client.POST("/v1/auth/guest", { body: { displayName: "Ada" } })
if (error !== undefined) throw new Error(error.error.code)
const me = await client.GET("/v1/players/me", {
  headers: { authorization: \`Bearer \${data.accessToken}\` }
})
const name: string | undefined = me.data?.player.displayName
console.log(name)`
  },
  "@hey-api/openapi-ts": {
    command: ["openapi-ts"],
    prints: new RegExp(
      [
        "^@hey-api/openapi-ts v[\\d.]+",
        "",
        "\\[Job 1\\] ~ Generating\\.\\.\\.",
        "\\[Job 1\\] +\\[1\\] openapi\\.json",
        "\\[Job 1\\] ✓ \\S+ · \\d+ files · \\S+$"
      ].join("\n")
    ),
    files: {
      "openapi-ts.config.js": `export default {
        input: "openapi.json",
        output: { path: "client", module: { extension: ".js" } }
      }`
    },
    program: `
import { client } from "./client/client.gen.js"
import { playersMe, sessionsGuest } from "./client/sdk.gen.js"
declare const process: { argv: [string, string, string, string] }
const [, , baseUrl, key] = process.argv
client.setConfig({ baseUrl, auth: () => key })
const { data } = await sessionsGuest({ body: { displayName: "Ada" }, throwOnError: true })
const me = await playersMe({
  auth: (scheme) => (scheme.scheme === "bearer" ? data.accessToken : key),
  throwOnError: true
})
const name: string = me.data.player.displayName
console.log(name)`
  },
  orval: {
    command: ["orval", "--config", "orval.config.js"],
    prints: /^🍻 orval v[\d.]+ - [^\n]+\napi - 🎉 [^\n]+$/,
    files: {
      "orval.config.js": `export default {
        api: {
          input: "./openapi.json",
          output: { target: "./api.ts", client: "fetch", baseUrl: ${JSON.stringify(baseUrl)} }
        }
      }`
    },
    program: `
import { playersMe, sessionsGuest } from "./api.js"
declare const process: { argv: [string, string, string, string] }
const [, , , key] = process.argv
const session = await sessionsGuest({ displayName: "Ada" }, { headers: { "X-Svc-Key": key } })
if (session.status !== 200) throw new Error(session.data.error.code)
const authorization = \`Bearer \${session.data.accessToken}\`
const me = await playersMe({ headers: { "X-Svc-Key": key, authorization } })
if (me.status !== 200) throw new Error(me.data.error.code)
const name: string = me.data.player.displayName
console.log(name)`
  }
}

/** Prints the diagnostics of AsyncAPI's parser. */
const parse = `
import { readFile } from "node:fs/promises"
import { Parser } from "@asyncapi/parser"
const { diagnostics } = await new Parser().parse(await readFile("asyncapi.json", "utf8"))
console.log(JSON.stringify(diagnostics.map(({ message, path }) => [message, path.join(".")])))`

describe.skipIf(!hasConsumers)(
  `the documents of the API under foreign tools${needsRegistry}`,
  () => {
    it("parses the AsyncAPI document by a foreign tool without a remark", async () => {
      const folder = makeFolder("asyncapi.json", { "parse.js": parse })
      const printed = await runConsumer(folder, process.execPath, "parse.js")
      assert.deepStrictEqual(JSON.parse(printed), [])
    })

    for (const [name, { command, files, prints, program }] of Object.entries(generators)) {
      it(`generates without a warning a client that compiles and signs a guest in: ${name}`, async () => {
        const sources = { "program.ts": program, "tsconfig.json": tsconfig, ...files }
        const folder = makeFolder("openapi.json", sources)
        const [generator = "", ...words] = command
        const printed = await runConsumer(folder, consumerAt(`.bin/${generator}`), ...words)
        assert.match(stripVTControlCharacters(printed).trim(), prints)
        await runConsumer(folder, process.execPath, consumerAt("typescript/bin/tsc"))
        const output = await runConsumer(folder, process.execPath, "out/program.js", baseUrl, key)
        assert.strictEqual(output.trim(), "Ada")
      })
    }
  }
)
