/** The features that frames belong to, which decide the frames that a socket refuses. */
import { assert, describe, it } from "@effect/vitest"
import { Record } from "effect"
import { featureErrors } from "#rpc/config-document/feature-errors"
import { type FeatureName, featureTable } from "#rpc/config-document/features"
import { ClientFrames, featureOfFrame } from "#rpc/realtime"
import { frameFeatureError, socketFeatureError } from "#server/gateway/frames"

const frameTypes = Array.from(ClientFrames.requests.keys())
const names = Record.keys(featureTable)
const all = new Set(names)

/** Errors where these features are off, and these are not offered. */
const errorsOf = (off: ReadonlyArray<FeatureName>, missing: ReadonlyArray<FeatureName> = []) =>
  featureErrors(
    Record.map(featureTable, (_, name) => !off.includes(name)),
    new Set(names.filter((name) => !missing.includes(name)))
  )

const refused = (...off: ReadonlyArray<FeatureName>) =>
  frameTypes.filter((t) => frameFeatureError(errorsOf(off), t) !== undefined)

describe("the feature of a frame", () => {
  it("finds the feature of every frame except ping", () => {
    const without = frameTypes.filter((t) => featureOfFrame(t) === undefined)
    assert.deepStrictEqual(without, ["ping"])
  })

  it("refuses only frames of channels and voice calls where channels are off", () => {
    const frames = refused("realtimeChannels", "voice")
    assert.deepStrictEqual(
      frames,
      frameTypes.filter((t) => /^(?:channel|voice)/.test(t))
    )
    assert.isNotEmpty(frames)
  })

  it("refuses all other frames except ping where multiplayer is off", () => {
    assert.deepStrictEqual(
      refused("multiplayer"),
      frameTypes.filter((t) => t !== "ping" && !/^(?:channel|voice)/.test(t))
    )
  })

  it("leaves a type that no frame has to the reply unknown_type", () => {
    assert.isUndefined(frameFeatureError(errorsOf(names), "channelFly"))
  })

  it("refuses frames of a feature that the deployment does not offer, whatever the config says", () => {
    assert.strictEqual(
      frameFeatureError(errorsOf([], ["multiplayer"]), "create")?._tag,
      "feature_unavailable"
    )
  })
})

describe("errors of features", () => {
  it("names no feature that is on and offered", () => {
    assert.strictEqual(
      featureErrors(
        Record.map(featureTable, () => true),
        all
      ).size,
      0
    )
  })

  it("refuses a feature whose dependency is not offered", () => {
    const errors = errorsOf([], ["realtimeChannels"])
    assert.deepStrictEqual(Array.from(errors.keys()).toSorted(), ["realtimeChannels", "voice"])
    assert.strictEqual(errors.get("voice")?._tag, "feature_unavailable")
  })

  it("refuses a socket with the error that the config can lift", () => {
    assert.isUndefined(socketFeatureError(errorsOf(["multiplayer"])))
    const error = socketFeatureError(errorsOf(["realtimeChannels", "voice"], ["multiplayer"]))
    assert.deepStrictEqual(error?.details, {
      feature: "realtimeChannels",
      configPath: "features.realtimeChannels"
    })
    assert.strictEqual(
      socketFeatureError(errorsOf([], ["multiplayer", "realtimeChannels"]))?._tag,
      "feature_unavailable"
    )
  })
})
