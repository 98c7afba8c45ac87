/** The committed AsyncAPI document: up to date, with every frame, reply and event. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { ClientFrames, ServerEvent } from "#rpc/realtime"
import { asyncapiText } from "#server/http/asyncapi"
import { at } from "#testing/players"

const committed = readFileSync(new URL("../../rpc/asyncapi.json", import.meta.url), "utf8")
const document: unknown = JSON.parse(committed)
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
})
