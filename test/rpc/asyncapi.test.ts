/** The committed AsyncAPI document: up to date, with every frame, reply and event. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { createConfig, lintFromString } from "@redocly/openapi-core"
import { ClientFrames, closeCodes, EventsError, ServerEvent } from "#rpc/realtime"
import { asyncapiText } from "#server/http/asyncapi"
import { at } from "#testing/players"

const committed = readFileSync(new URL("../../rpc/asyncapi.json", import.meta.url), "utf8")
const document: unknown = JSON.parse(committed)
/** The problems of examples that do not fit their schemas, which are those of OpenAPI. */
const unfit = async (messages: unknown): Promise<ReadonlyArray<string>> => {
  const schemas: Record<string, unknown> = Object(at(document, "components", "schemas"))
  const withExamples = Object.entries(Object(messages)).map(([name, message]) => {
    const payloads = itemsOf(at(message, "examples")).map((example) => at(example, "payload"))
    return [`message ${name}`, { ...Object(at(message, "payload")), examples: payloads }] as const
  })
  const source = JSON.stringify({
    openapi: "3.1.0",
    info: { title: "Messages", version: "1" },
    paths: {},
    components: { schemas: { ...schemas, ...Object.fromEntries(withExamples) } }
  })
  const config = await createConfig({ rules: { "no-invalid-schema-examples": "error" } })
  const problems = await lintFromString({ source, absoluteRef: "messages.json", config })
  return problems.map(({ location, message }) => `${message} ${location[0]?.pointer ?? ""}`)
}

const itemsOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const namesIn = (...path: ReadonlyArray<string>) => Object.keys(Object(at(document, ...path)))

describe("rpc/asyncapi.json", () => {
  it("commits the AsyncAPI document that the definitions generate (otherwise: npm run generate)", () => {
    assert.strictEqual(committed, asyncapiText())
  })

  it("lists a message for each frame, its reply and each event in rpc/asyncapi.json, and no other", () => {
    const frames = Array.from(ClientFrames.requests.keys())
    const events = new Set(ServerEvent.members.map((event) => event.fields.t.literal))
    assert.sameMembers(namesIn("channels", "realtime", "messages"), [
      "auth",
      "auth_reply",
      ...frames,
      ...frames.map((frame) => `${frame}_reply`),
      ...Array.from(events, (event) => (frames.includes(event) ? `${event}_event` : event))
    ])
  })

  it("shows the fields and the error codes of a frame", () => {
    const messages = at(document, "components", "messages")
    const create = at(messages, "create", "payload")
    assert.deepStrictEqual(at(create, "required"), ["t", "mode"])
    assert.includeMembers(Object.keys(Object(at(create, "properties"))), ["rid", "private", "code"])
    const error = at(messages, "create_reply", "payload", "oneOf", 1, "properties", "error")
    const codes = at(error, "properties", "code", "enum")
    assert.includeMembers(Array.isArray(codes) ? codes : [], ["mode_not_found", "rate_limited"])
  })

  it("gives every message of the socket examples that fit its schema", async () => {
    const messages = at(document, "components", "messages")
    const bare = Object.entries(Object(messages))
      .filter(([, message]) => itemsOf(at(message, "examples")).length === 0)
      .map(([name]) => name)
    assert.deepStrictEqual(bare, [])
    assert.deepStrictEqual(await unfit(messages), [])
  })

  it("finds an example of the socket that does not fit its schema", async () => {
    const ping = Object(at(document, "components", "messages", "ping"))
    const wrong = { ...ping, examples: [{ payload: { t: "pong" } }] }
    assert.match((await unfit({ wrong })).join("\n"), /constant/)
  })

  it("describes the handshake of the socket: credentials, replies to auth and their errors", () => {
    const replies = itemsOf(at(document, "operations", "receiveAuth", "reply", "messages"))
    const names = replies.map((reply) => String(at(reply, "$ref")).split("/").at(-1))
    assert.deepStrictEqual(names, ["welcome", "auth_reply"])
    const payload = at(document, "components", "messages", "auth_reply", "payload")
    const codes = itemsOf(
      at(payload, "oneOf", 1, "properties", "error", "properties", "code", "enum")
    )
    assert.includeMembers(
      [...codes],
      EventsError.members.map(({ identifier }) => identifier)
    )
    assert.sameMembers(namesIn("components", "securitySchemes"), ["publishableKey", "accessToken"])
    for (const server of namesIn("servers")) {
      assert.lengthOf(itemsOf(at(document, "servers", server, "security")), 2)
    }
  })

  it("lists the close codes of the socket, with what a client does next", () => {
    const listed = itemsOf(at(document, "channels", "realtime", "x-close-codes"))
    assert.sameMembers(
      listed.map((entry) => at(entry, "code")),
      Object.values(closeCodes)
    )
    for (const entry of listed) assert.match(String(at(entry, "description")), /: .+\.$/)
  })
})
