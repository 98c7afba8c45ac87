/** Addresses that do not exist, as browsers and programs get them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { addressOfNode, nodeWith, SharedDatabase } from "../support/http-stack.ts"

const Node = nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer))

/** What Chromium sends for an address that somebody types. */
const browser = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" }

layer(Node)("an address that does not exist", (it) => {
  const answerOf = (path: string, headers: Readonly<Record<string, string>>, method = "GET") =>
    Effect.flatMap(addressOfNode, (url) =>
      Effect.promise(async () => {
        const answer = await fetch(url + path, { headers, method })
        return {
          status: answer.status,
          type: answer.headers.get("content-type"),
          text: await answer.text(),
          headers: answer.headers
        }
      })
    )

  it.effect("shows a browser a page that leads on", () =>
    Effect.gen(function* () {
      for (const path of ["/nowhere", "/dev/nothing?x=1", "/v1", "/dashboard/files/none.js"]) {
        const { headers, status, text, type } = yield* answerOf(path, browser)
        assert.deepStrictEqual([status, type], [404, "text/html; charset=utf-8"], path)
        assert.include(text, '<a href="/docs">')
        assert.notInclude(text, "nothing")
        assert.include(headers.get("content-security-policy") ?? "", "default-src 'none'")
        assert.match(headers.get("x-request-id") ?? "", /./)
      }
      const { status, text } = yield* answerOf("/nowhere", browser, "HEAD")
      assert.deepStrictEqual([status, text], [404, ""])
    })
  )

  it.effect("answers with an error in JSON to programs, to changes, and under the API", () =>
    Effect.gen(function* () {
      const answers = [
        yield* answerOf("/nowhere", {}),
        yield* answerOf("/nowhere", { accept: "application/json" }),
        yield* answerOf("/nowhere", browser, "POST"),
        yield* answerOf("/v1/nowhere", browser)
      ]
      for (const { status, text, type } of answers) {
        assert.deepStrictEqual([status, type], [404, "application/json"])
        assert.deepStrictEqual(JSON.parse(text), {
          error: { code: "not_found", message: "Not found." }
        })
      }
    })
  )
})
