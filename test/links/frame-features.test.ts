/** The features that frames belong to, which decide the frames that a socket refuses. */
import { assert, describe, it } from "@effect/vitest"
import { ClientFrames, featureOfFrame } from "#rpc/realtime"
import { featureError } from "#server/links/frames"

const frameTypes = Array.from(ClientFrames.requests.keys())

const refused = (features: { readonly rooms: boolean; readonly channels: boolean }) =>
  frameTypes.filter((t) => featureError({ ...features, any: true }, t) !== undefined)

describe("the feature of a frame", () => {
  it("finds the feature of every frame except ping", () => {
    const without = frameTypes.filter((t) => featureOfFrame(t) === undefined)
    assert.deepStrictEqual(without, ["ping"])
  })

  it("refuses only frames of channels and voice calls where channels are off", () => {
    const frames = refused({ rooms: true, channels: false })
    assert.deepStrictEqual(
      frames,
      frameTypes.filter((t) => /^(?:channel|voice)/.test(t))
    )
    assert.isNotEmpty(frames)
  })

  it("refuses all other frames except ping where multiplayer is off", () => {
    assert.deepStrictEqual(
      refused({ rooms: false, channels: true }),
      frameTypes.filter((t) => t !== "ping" && !/^(?:channel|voice)/.test(t))
    )
  })

  it("leaves a type that no frame has to the reply unknown_type", () => {
    assert.isUndefined(featureError({ rooms: false, channels: false, any: false }, "channelFly"))
  })
})
