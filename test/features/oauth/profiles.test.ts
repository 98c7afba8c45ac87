/** Profiles of providers with fields that are empty or null. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { profileFromDiscord, profileFromX } from "#server/features/oauth/profiles"

describe("profiles of providers", () => {
  it.effect("takes the username of a Discord account whose display name is empty", () =>
    Effect.gen(function* () {
      for (const [shown, name] of [
        ["", "ada"],
        [" ", "ada"],
        [null, "ada"],
        ["Ada L.", "Ada L."]
      ]) {
        const body = JSON.stringify({ id: "1", username: "ada", global_name: shown })
        assert.strictEqual((yield* profileFromDiscord(body)).name, name)
      }
    })
  )

  it.effect("signs in an X account without a picture", () =>
    Effect.gen(function* () {
      const data = { id: "1", name: "Ada", username: "ada", profile_image_url: null }
      const profile = yield* profileFromX(JSON.stringify({ data }))
      assert.isNull(profile.avatarUrl)
      assert.strictEqual(profile.name, "Ada")
    })
  )
})
