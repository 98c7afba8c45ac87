/** One player: who it is, what happened to it, and what an operator may do. */
import { ask, type Response } from "../core/api.ts"
import { notify } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { Choice } from "../parts/form.tsx"
import type { Load } from "../parts/load.ts"
import { useRead } from "../parts/read.ts"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { Empty, Loaded } from "../parts/load-states.tsx"
import { Badge, bytes, Copyable, count, Facts, Panel, Time, Title } from "../parts/basics.tsx"
import { Table } from "../parts/table.tsx"
import { Entries } from "./entries.tsx"
import { PlayerActions } from "./player-actions.tsx"

const { player: own, players: list } = texts

const route = "GET /v1/projects/:projectId/environments/:env/players/:playerId"
type Detail = Response<typeof route>["player"]

const bands = ["child", "teen", "adult"] as const

const Account = ({ player, refresh }: Readonly<{ player: Detail; refresh: () => void }>) => {
  const { params } = useCurrentView()
  const setAge = async (chosen: string) => {
    const band = bands.find((it) => it === chosen)
    if (band === undefined) return
    await ask("PUT /v1/projects/:projectId/environments/:env/players/:playerId/age", {
      params: { ...params, playerId: player.id },
      body: { band }
    })
    refresh()
    notify(own.ageSet)
  }
  return (
    <Panel title={own.facts}>
      <Facts
        of={[
          [own.id, <Copyable text={player.id} label={own.id} />],
          [
            own.email,
            <>
              {player.email ?? <span class="soft">–</span>}{" "}
              {player.email !== null && !player.emailVerified && (
                <Badge kind="amber">{own.unverified}</Badge>
              )}
            </>
          ],
          [
            own.identities,
            player.isGuest
              ? own.noIdentities
              : player.identities.map(({ provider }) => provider).join(", ")
          ],
          [list.created, <Time at={player.createdAt} />],
          [list.seen, <Time at={player.lastSeenAt} />],
          [
            own.age,
            <Choice
              label={own.age}
              hideLabel
              value={player.age.ageBand}
              options={bands.map((band) => [band, own.ages[band]])}
              onChoose={(band) => void setAge(band)}
            />
          ]
        ]}
      />
    </Panel>
  )
}

const Sanctions = ({ player }: { readonly player: Detail }) => (
  <Panel title={own.sanctions}>
    {player.sanctions.length === 0 ? (
      <p class="body soft">{own.noSanctions}</p>
    ) : (
      <ul class="timeline">
        {player.sanctions.map((sanction) => (
          <li key={sanction.id}>
            <div class="row">
              <Badge kind={sanction.active ? "red" : ""}>
                {sanction.active ? list.banned : own.lifted}
              </Badge>
              <Time at={sanction.createdAt} />
              <span class="soft">
                {sanction.expiresAt === null ? (
                  own.forever
                ) : (
                  <>
                    {own.until} <Time at={sanction.expiresAt} />
                  </>
                )}
              </span>
            </div>
            {sanction.reason !== null && <p>{sanction.reason}</p>}
            {sanction.note !== null && <p class="soft">{sanction.note}</p>}
            {sanction.appeal !== undefined && (
              <p>
                {own.appeal} <Badge kind="blue">{sanction.appeal.status}</Badge>{" "}
                {sanction.appeal.message}
              </p>
            )}
          </li>
        ))}
      </ul>
    )}
  </Panel>
)

const Saves = ({ player }: { readonly player: Detail }) => (
  <Panel title={own.saves}>
    <Table
      rows={player.saves}
      none={own.noSaves}
      keyOf={({ key }) => key}
      columns={[
        { head: own.key, cell: ({ key }) => <span class="mono">{key}</span> },
        { head: own.version, kind: "number", cell: ({ version }) => version },
        { head: own.size, kind: "number", cell: ({ size }) => bytes(size) },
        { head: own.updated, cell: ({ updatedAt }) => <Time at={updatedAt} /> }
      ]}
    />
  </Panel>
)

const Stats = ({ player }: { readonly player: Detail }) => {
  const stats = Object.entries(player.stats)
  return (
    <Panel title={own.stats}>
      {stats.length === 0 ? (
        <p class="body soft">{own.noStats}</p>
      ) : (
        <Facts of={stats.map(([key, value]) => [key, count(value)])} />
      )}
    </Panel>
  )
}

const Sessions = ({ player }: { readonly player: Detail }) => (
  <Panel title={own.sessions}>
    {player.sessions.length === 0 ? (
      <p class="body soft">{own.noSessions}</p>
    ) : (
      <ul class="timeline">
        {player.sessions.map(({ createdAt, id, lastUsedAt, userAgent }) => (
          <li key={id}>
            <span>
              {own.opened} <Time at={createdAt} />, {own.used.toLowerCase()}{" "}
              <Time at={lastUsedAt} />
            </span>
            <span class="soft small">
              {own.device}: {userAgent ?? own.unknownDevice}
            </span>
          </li>
        ))}
      </ul>
    )}
  </Panel>
)

/** The audit log's entries about the player. */
const History = ({ id }: { readonly id: string }) => {
  const load = useRead("GET /v1/projects/:projectId/audit", { query: { target: id, limit: 20 } })
  return (
    <Panel title={own.history}>
      <Loaded of={load}>
        {({ entries }) =>
          entries.length === 0 ? (
            <p class="body soft">{own.noHistory}</p>
          ) : (
            <Entries entries={entries} />
          )
        }
      </Loaded>
    </Panel>
  )
}

const Content = ({ load, player }: { readonly player: Detail; readonly load: Load<unknown> }) => (
  <>
    <Title text={player.displayName}>
      {player.banned && <Badge kind="red">{list.banned}</Badge>}
      <PlayerActions player={player} refresh={load.refresh} />
    </Title>
    <div class="grid">
      <div class="stack">
        <Account player={player} refresh={load.refresh} />
        <Sessions player={player} />
        <Sanctions player={player} />
      </div>
      <div class="stack">
        <Saves player={player} />
        <Stats player={player} />
        <History key={`${player.banned}/${player.age.ageBand}`} id={player.id} />
      </div>
    </div>
  </>
)

export const Player = ({ id }: { readonly id: string }) => {
  const { env, project } = useCurrentView()
  const load = useRead(route, { params: { playerId: id } })
  const all = addressOf(project, env, "players")
  if (load.data === undefined && load.error?.code === "player_not_found") {
    return (
      <Empty title={texts.missing.title} text={load.error.message}>
        <a href={all}>{own.back}</a>
      </Empty>
    )
  }
  return (
    <div class="stack">
      <a class="small" href={all}>
        {own.back}
      </a>
      <Loaded of={load}>{({ player }) => <Content player={player} load={load} />}</Loaded>
    </div>
  )
}
