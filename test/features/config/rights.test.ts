/** Rights and teams of a mode in the config: what a push refuses, and what it warns of. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { decodeConfig } from "#rpc/config-document/document"
import { configWarnings } from "#rpc/config-document/warnings"

const documentOf = (mode: object) => ({
  multiplayer: { modes: [{ key: "arena", minPlayers: 6, maxPlayers: 8, ...mode }] }
})

const problemsOf = (mode: object) =>
  Result.match(decodeConfig(documentOf(mode)), {
    onSuccess: () => [],
    onFailure: ({ details }) =>
      details.issues.map(
        ({ message, path }) => `${path.replace("multiplayer.modes[0].", "")}: ${message}`
      )
  })

const warningsOf = (mode: object) => {
  const document = documentOf(mode)
  return configWarnings(Result.getOrThrow(decodeConfig(document)), document).map(
    ({ message, path }) => `${path.replace("multiplayer.modes[0].", "")}: ${message}`
  )
}

const teams = (...slots: ReadonlyArray<readonly [min: number, max: number]>) =>
  slots.map(([min, max], index) => ({ key: `team_${index}`, min, max }))

const vote = (fields: object) => ({ authority: { votes: [{ op: "kick", ...fields }] } })

describe("the teams of a mode", () => {
  it.each([
    { teams: teams([3, 4], [3, 4]), assign: "match" },
    { teams: teams([0, 4], [0, 4]), assign: "match" },
    { teams: teams([1, 1], [5, 7]), assign: "match" },
    { teams: teams([0, 8], [2, 8]) },
    { teams: teams([0, 8], [0, 8]), assign: "free" }
  ])("accepts slots that seat a full room: %j", (mode) => {
    assert.deepStrictEqual(problemsOf(mode), [])
  })

  it.each([
    [
      { teams: teams([0, 4], [0, 3]) },
      "teams: max of all teams together is 7: must be >= maxPlayers (8)"
    ],
    [
      { teams: teams([0, 5], [0, 4]), assign: "match" },
      "teams: max of all teams together is 9: must be maxPlayers (8)"
    ],
    [
      { teams: teams([3, 4], [4, 4]) },
      "teams: min of all teams together is 7: must be <= minPlayers (6)"
    ],
    [
      { teams: teams([2, 4], [3, 4]), assign: "match" },
      "teams: min of all teams together is 5: must be minPlayers (6)"
    ],
    [{ teams: teams([3, 2], [0, 8]) }, "teams[0].max: must be >= min (3)"],
    [
      {
        teams: [
          { key: "a", max: 8 },
          { key: "a", max: 8 }
        ]
      },
      'teams[1].key: "a" is already the key of multiplayer.modes[0].teams[0]: use another key'
    ],
    [{ teams: [{ key: "a" }] }, "teams[0].max: is required"],
    [
      { teams: teams([0, 8]), assign: "random" },
      'assign: must be one of "auto", "match", "free", "host"'
    ]
  ])("refuses %j", (mode, problem) => {
    assert.deepStrictEqual(problemsOf(mode), [problem])
  })

  it("counts the seats of a peer-to-peer mode after its cap", () => {
    const mode = { minPlayers: 2, transport: "p2p", p2p: { maxPlayers: 4 } }
    assert.deepStrictEqual(problemsOf({ ...mode, teams: teams([0, 2], [0, 2]) }), [])
  })

  it("refuses 64 teams in one message", () => {
    const many = Array.from({ length: 64 }, (_, index) => ({ key: `t${index}`, max: 1 }))
    const problems = problemsOf({ maxPlayers: 64, teams: many })
    assert.deepStrictEqual(problems, ["teams: must have at most 16 entries"])
  })
})

describe("the rights of a mode", () => {
  it.each([
    [
      { authority: { host: ["fly"] } },
      'authority.host[0]: must be one of "kick", "ban", "mute", "team", "transfer"'
    ],
    [vote({ op: "dance" }), 'authority.votes[0].op: must be one of "kick", "restart", "surrender"'],
    [vote({ share: 0.49 }), "authority.votes[0].share: must be a number from 0.5 to 1"],
    [vote({ minVoters: 1 }), "authority.votes[0].minVoters: must be an integer from 2 to 64"],
    [vote({ seconds: 9 }), "authority.votes[0].seconds: must be an integer from 10 to 120"],
    [
      { authority: { votes: [{ op: "kick" }, { op: "kick" }] } },
      'authority.votes[1].op: multiplayer.modes[0].authority.votes[0] is for "kick" too: keep one of them'
    ]
  ])("refuses %j", (mode, problem) => {
    assert.deepStrictEqual(problemsOf(mode), [problem])
  })

  it("refuses partyVotesAsOne, since there are no parties", () => {
    const [problem = ""] = problemsOf({ authority: { partyVotesAsOne: true } })
    assert.match(problem, /^authority.partyVotesAsOne: unknown field/)
  })

  it("warns of powers and ways to choose a team in a mode without teams", () => {
    const needsTeams = "has no effect: add teams, or remove it"
    assert.deepStrictEqual(warningsOf({ authority: { host: ["team"] }, assign: "host" }), [
      `authority.host: "team" ${needsTeams}`,
      `assign: ${needsTeams}`
    ])
    assert.deepStrictEqual(warningsOf({ authority: { host: ["kick"] } }), [])
  })
})
