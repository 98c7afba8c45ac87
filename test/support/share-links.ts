/** Apps with share links. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type TestTarget } from "#testing/players"
import { dataFolder } from "./data-folder.ts"
import { addressOfNode, configure, makeTenants, nodeWith, SharedDatabase } from "./http-stack.ts"
import { play } from "./moderation-calls.ts"

/** A node that draws cards in a folder of its own. */
export const ShareNode = Layer.unwrap(
  Effect.map(dataFolder("svc-share-"), (folder) => nodeWith({ SVC_DATA_DIR: folder }))
).pipe(Layer.provideMerge(SharedDatabase.layer))

/** All share tools. */
export const everything = {
  images: { enabled: true, title: "Star Racer" },
  links: {
    enabled: true,
    text: { en: "I made {score}!", de: "Ich habe {score}!" },
    hashtags: ["starracer"],
    via: "studio"
  },
  tracking: { enabled: true }
}

/** An environment with this config. */
export const appOf = Effect.fnUntraced(function* (document: object = { share: everything }) {
  const url = yield* addressOfNode
  const { development, production } = yield* makeTenants
  yield* configure(development, document)
  const target: TestTarget = { url, ...development }
  return { target, tenant: development, production: { url, ...production } }
})

/** Makes a link and returns its id. */
export const share = Effect.fnUntraced(function* (
  target: TestTarget,
  player: { readonly accessToken: string },
  link: object
) {
  const answer = yield* play(target, player, "POST", "share/links", link)
  assert.strictEqual(answer.status, 201, JSON.stringify(answer.body))
  const address = String(answer.body.link)
  return { body: answer.body, id: address.slice(-10) }
})
