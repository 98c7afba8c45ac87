/** One player: who it is, what happened to it, and what an operator may do. */
import { ask, type Response } from "../core/api.ts"
import { notify } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { Choice } from "../parts/form.tsx"
import { type Load, useLoad } from "../parts/load.ts"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { Empty, Loaded } from "../parts/load-states.tsx"
import { Badge, bytes, Copyable, count, Panel, Time, Title } from "../parts/basics.tsx"
import { Entries } from "./entries.tsx"
import { PlayerActions } from "./player-actions.tsx"

const { player: own, players: list } = texts

const route = "GET /v1/projects/:projectId/environments/:env/players/:playerId"
type Detail = Response<typeof route>["player"]

const bands = ["child", "teen", "adult"] as const

const Account = ({
  player,
  refresh
}: {
  readonly player: Detail
  readonly refresh: () => void
}) => {
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
      <dl class="facts body">
        <dt>{own.id}</dt>
        <dd>
          <Copyable text={player.id} label={own.id} />
        </dd>
        <dt>{own.email}</dt>
        <dd>
          {player.email ?? <span class="soft">–</span>}{" "}
          {player.email !== null && !player.emailVerified && (
            <Badge kind="amber">{own.unverified}</Badge>
          )}
        </dd>
        <dt>{own.identities}</dt>
        <dd>
          {player.isGuest
            ? own.noIdentities
            : player.identities.map(({ provider }) => provider).join(", ")}
        </dd>
        <dt>{list.created}</dt>
        <dd>
          <Time at={player.createdAt} />
        </dd>
        <dt>{list.seen}</dt>
        <dd>
          <Time at={player.lastSeenAt} />
        </dd>
        <dt>{own.age}</dt>
        <dd>
          <Choice
            label={own.age}
            hideLabel
            value={player.age.ageBand}
            options={bands.map((band) => [band, own.ages[band]])}
            onChoose={(band) => void setAge(band)}
          />
        </dd>
      </dl>
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
    {player.saves.length === 0 ? (
      <p class="body soft">{own.noSaves}</p>
    ) : (
      <div class="table-wrap" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{own.key}</th>
              <th scope="col" class="number">
                {own.version}
              </th>
              <th scope="col" class="number">
                {own.size}
              </th>
              <th scope="col">{own.updated}</th>
            </tr>
          </thead>
          <tbody>
            {player.saves.map(({ key, size, updatedAt, version }) => (
              <tr key={key}>
                <td class="mono">{key}</td>
                <td class="number">{version}</td>
                <td class="number">{bytes(size)}</td>
                <td>
                  <Time at={updatedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </Panel>
)

const Stats = ({ player }: { readonly player: Detail }) => {
  const stats = Object.entries(player.stats)
  return (
    <Panel title={own.stats}>
      {stats.length === 0 ? (
        <p class="body soft">{own.noStats}</p>
      ) : (
        <dl class="facts body">
          {stats.map(([key, value]) => (
            <>
              <dt class="mono">{key}</dt>
              <dd>{count(value)}</dd>
            </>
          ))}
        </dl>
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
  const { params, project } = useCurrentView()
  const load = useLoad(`${project.id}/audit/${id}`, (signal) =>
    ask("GET /v1/projects/:projectId/audit", {
      params,
      query: { target: id, limit: 20 },
      signal
    })
  )
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
  const { env, params, project } = useCurrentView()
  const load = useLoad(`${project.id}/${env}/players/${id}`, (signal) =>
    ask(route, { params: { ...params, playerId: id }, signal })
  )
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
