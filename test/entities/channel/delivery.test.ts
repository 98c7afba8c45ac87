/** Whom a message in a channel does not reach. */
import { assert, describe, it } from "@effect/vitest"
import { HashMap } from "effect"
import { unreachedFrom, withBlocks, withoutBlocks } from "#entities/channel/delivery"
import { type ChannelState, type Member, openChannel } from "#entities/channel/model"

const memberOf = (id: string): Member => ({
  id,
  displayName: id,
  joinedAt: 0,
  attachment: { node: "n1", connectionId: `con_${id}` },
  absence: null
})

const channelOf = (...ids: ReadonlyArray<string>): ChannelState => ({
  ...openChannel(
    {
      environmentId: "env_1",
      name: "lobby",
      managed: true,
      ownerId: null,
      join: "anyone",
      send: "anyone",
      open: false,
      maxMembers: 100,
      voice: null,
      createdAt: 0
    },
    0
  ),
  members: HashMap.fromIterable(ids.map((id) => [id, memberOf(id)] as const))
})

describe("`unreachedFrom`", () => {
  it("names those who have blocked the sender and those whom the sender has blocked", () => {
    const state = withBlocks(channelOf("ann", "ben", "cat", "dan"), "ann", ["ben"])
    assert.deepStrictEqual(unreachedFrom(state, "ben"), ["ann"])
    assert.deepStrictEqual(unreachedFrom(state, "ann"), ["ben"])
    assert.deepStrictEqual(unreachedFrom(state, "cat"), [])
  })

  it("names members only, however long the sender's list is", () => {
    const strangers = Array.from({ length: 1000 }, (_, index) => `x${index}`)
    const state = withBlocks(channelOf("ann", "ben"), "ann", [...strangers, "ben"])
    assert.deepStrictEqual(unreachedFrom(state, "ann"), ["ben"])
  })
})

describe("the blocks of a channel", () => {
  it("go with an empty list and with the member", () => {
    const state = withBlocks(channelOf("ann", "ben"), "ann", ["ben"])
    assert.strictEqual(withBlocks(state, "ann", []).blocks.size, 0)
    assert.strictEqual(withoutBlocks(state, [{ id: "ann" }]).size, 0)
    assert.strictEqual(withoutBlocks(state, [{ id: "ben" }]), state.blocks)
  })
})
