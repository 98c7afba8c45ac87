/**
 * Dead letters: messages and events that failed for good. The developer reads, redelivers or
 * deletes them.
 */
import { useState } from "preact/hooks"
import { ask, type Response } from "../../core/api.ts"
import { notify } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Confirm } from "../../parts/dialog.tsx"
import { Choice, useAction } from "../../parts/form.tsx"
import { usePages } from "../../parts/pages.tsx"
import { useRead } from "../../parts/read.ts"
import { useCurrentView, useQueryValue } from "../../parts/current-view.ts"
import { Empty, Failure, Loaded } from "../../parts/load-states.tsx"
import { Badge, Button, Panel, Snippet, Time } from "../../parts/basics.tsx"

const { functions: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/functions/dead-letters"
type Page = Response<typeof route>
type Letter = Page["deadLetters"][number]

const itemRoute = "/v1/projects/:projectId/environments/:env/functions/dead-letters/:id"

const hooks = ["onPlayerCreated", "onRoomClosed", "onStats"]

/** The body as people read it: JSON that can be parsed is indented. */
const textOf = ({ body, contentType }: Letter): string => {
  if (contentType !== "json") return body
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}

const Item = ({
  letter,
  refresh,
  remove
}: {
  readonly letter: Letter
  readonly refresh: () => void
  readonly remove: () => void
}) => {
  const { params } = useCurrentView()
  const { attempts, contentType, encoding, failedAt, id, kind, name, sentAt } = letter
  const { busy, error, run } = useAction(async () => {
    await ask(`POST ${itemRoute}/retry`, { params: { ...params, id } })
    refresh()
    notify(own.retried(id))
  })
  return (
    <li>
      <div class="row">
        <strong>{name}</strong>
        <Badge>{own.failedKinds[kind]}</Badge>
        <code class="soft">{id}</code>
        <span class="grow" />
        <Button kind="small" label={own.retryTitle(id)} disabled={busy} onClick={run}>
          {own.retry}
        </Button>
        <Button kind="danger small" label={own.deleteFailedTitle(id)} onClick={remove}>
          {own.deleteFailed}
        </Button>
      </div>
      <p class="small soft">
        {own.attempts(attempts)} <Time at={sentAt} />, {own.failedAt} <Time at={failedAt} />
      </p>
      <details>
        <summary class="small">
          {encoding === "utf8" ? own.bodyOf(id) : own.binaryOf(id, contentType)}
        </summary>
        <Snippet label={own.bodyOf(id)} text={textOf(letter)} />
      </details>
      {error !== undefined && <Failure error={error} />}
    </li>
  )
}

const List = ({
  first,
  name,
  refreshFirst
}: {
  readonly first: Page
  readonly name: string
  readonly refreshFirst: () => void
}) => {
  const { params } = useCurrentView()
  const { more, pages, reset } = usePages(
    first,
    ({ nextCursor }) => nextCursor,
    (cursor) => ask(route, { params, query: { name, cursor } })
  )
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const refresh = () => {
    reset()
    refreshFirst()
  }
  return (
    <>
      <ul class="timeline">
        {pages
          .flatMap(({ deadLetters }) => deadLetters)
          .map((letter) => (
            <Item
              key={letter.id}
              letter={letter}
              refresh={refresh}
              remove={() => setChosen(letter.id)}
            />
          ))}
      </ul>
      {more}
      {chosen !== undefined && (
        <Confirm
          title={own.deleteFailedTitle(chosen)}
          action={own.deleteFailed}
          close={() => setChosen(undefined)}
          run={async () => {
            await ask(`DELETE ${itemRoute}`, { params: { ...params, id: chosen } })
            refresh()
            notify(own.failedDeleted(chosen))
          }}
        >
          <p>{own.deleteFailedText}</p>
        </Confirm>
      )}
    </>
  )
}

export const DeadLetters = ({ queues }: { readonly queues: ReadonlyArray<string> }) => {
  const [name, setName] = useQueryValue("queue")
  const [, showTab] = useQueryValue("tab")
  const load = useRead(route, { query: { name } })
  const names = [...new Set([...queues, ...hooks, ...(name === "" ? [] : [name])])]
  return (
    <Panel
      title={own.failed}
      lead={own.failedLead}
      actions={
        <Choice
          label={own.queue}
          hideLabel
          value={name}
          options={[["", own.allQueues], ...names.map((it) => [it, it] as const)]}
          onChoose={setName}
        />
      }
    >
      <Loaded of={load}>
        {(first) =>
          first.deadLetters.length === 0 ? (
            <Empty title={own.noFailed} text={own.noFailedText}>
              <Button onClick={() => showTab("logs")}>{own.toLogs}</Button>
            </Empty>
          ) : (
            <List key={name} first={first} name={name} refreshFirst={load.refresh} />
          )
        }
      </Loaded>
    </Panel>
  )
}
