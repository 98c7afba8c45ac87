/** Inbox of appeals, each with its ban and a reply. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { notify } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { Choice, TextField, useAction } from "../parts/form.tsx"
import { useRead } from "../parts/read.ts"
import { addressOf, useCurrentView, useQueryValue } from "../parts/current-view.ts"
import { Empty, Failure, Loaded } from "../parts/load-states.tsx"
import { Badge, Button, Time, Title } from "../parts/basics.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"

const { moderation: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/appeals"
type Page = Response<typeof route>
type Item = Page["appeals"][number]

const colours = { open: "amber", accepted: "green", rejected: "red" } as const

const Decision = ({ appeal, refresh }: { readonly appeal: Item; readonly refresh: () => void }) => {
  const { params } = useCurrentView()
  const [reply, setReply] = useState("")
  const { busy, error, run } = useAction(async (accept: boolean) => {
    await ask("POST /v1/projects/:projectId/environments/:env/appeals/:appealId/resolve", {
      params: { ...params, appealId: appeal.id },
      body: { accept, ...(reply.trim() === "" ? {} : { response: reply }) }
    })
    notify(accept ? own.accepted(appeal.player.displayName) : own.rejected)
    refresh()
  })
  return (
    <>
      <TextField
        label={own.reply(appeal.player.displayName)}
        maxLength={1000}
        value={reply}
        onInput={({ currentTarget }) => setReply(currentTarget.value)}
      />
      {error !== undefined && <Failure error={error} />}
      <div class="row end">
        <Button kind="danger" disabled={busy} onClick={() => run(false)}>
          {own.reject}
        </Button>
        <Button kind="primary" disabled={busy} onClick={() => run(true)}>
          {own.accept}
        </Button>
      </div>
    </>
  )
}

const Appeal = ({ appeal, refresh }: { readonly appeal: Item; readonly refresh: () => void }) => {
  const { env, project } = useCurrentView()
  const { player, sanction, status } = appeal
  return (
    <article class="panel" aria-label={own.appealOf(player.displayName)}>
      <header>
        <h2>
          <a href={addressOf(project, env, "players", player.id)}>{player.displayName}</a>
        </h2>
        <Badge kind={colours[status]}>{own.states[status]}</Badge>
        <span class="grow" />
        <span class="soft small">
          <Time at={appeal.createdAt} />
        </span>
      </header>
      <div class="body stack">
        <p>{appeal.message}</p>
        <p class="soft small">
          {own.banned} <Time at={sanction.createdAt} />
          {sanction.reason !== null && `: ${sanction.reason}`}
        </p>
        {appeal.response !== null && <p class="notice">{appeal.response}</p>}
        {status === "open" && <Decision appeal={appeal} refresh={refresh} />}
      </div>
    </article>
  )
}

const Moderation = () => {
  const { env, project } = useCurrentView()
  const [status, setStatus] = useQueryValue("status")
  const load = useRead(route, { query: { status, limit: 100 } })
  return (
    <div class="stack">
      <Title text={own.title} lead={own.lead}>
        <Choice
          label={own.status}
          hideLabel
          value={status}
          options={[
            ["", own.all],
            ["open", own.states.open],
            ["accepted", own.states.accepted],
            ["rejected", own.states.rejected]
          ]}
          onChoose={setStatus}
        />
      </Title>
      <Loaded of={load}>
        {({ appeals, nextCursor }) =>
          appeals.length === 0 ? (
            <section class="panel">
              <Empty title={own.none} text={own.noneText}>
                <a class="button" href={addressOf(project, env, "players")}>
                  {texts.players.title}
                </a>
              </Empty>
            </section>
          ) : (
            <>
              {appeals.map((appeal) => (
                <Appeal key={appeal.id} appeal={appeal} refresh={load.refresh} />
              ))}
              {nextCursor !== null && <p class="notice">{own.first}</p>}
            </>
          )
        }
      </Loaded>
    </div>
  )
}

export const page: ViewEntry = { word: "moderation", text: own.title, view: Moderation }
