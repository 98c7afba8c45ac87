/** Actions of an operator on a player: ban, lift the ban, export, delete. */
import { useState } from "preact/hooks"
import { useLocation } from "preact-iso"
import { ask, type Response } from "../core/api.ts"
import { notify } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { Cancel, Confirm, Dialog } from "../parts/dialog.tsx"
import { saveFile } from "../parts/file.ts"
import { Field, Form, TextField, useAction } from "../parts/form.tsx"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { Button } from "../parts/basics.tsx"
import { Failure } from "../parts/load-states.tsx"

const { player: own } = texts

type Detail = Response<"GET /v1/projects/:projectId/environments/:env/players/:playerId">["player"]

interface Given {
  readonly player: Detail
  readonly refresh: () => void
}

/** The changes of a player, each with a message and, where there is one, its reverse. */
const useChanges = ({ player, refresh }: Given) => {
  const view = useCurrentView()
  const params = { ...view.params, playerId: player.id }
  const ban = async (reason?: string, publicNote?: string) => {
    await ask("POST /v1/projects/:projectId/environments/:env/players/:playerId/ban", {
      params,
      body: {
        ...(reason === undefined ? {} : { reason }),
        ...(publicNote === undefined ? {} : { publicNote })
      }
    })
    refresh()
    notify(own.bannedDone(player.displayName), { label: own.undo, run: () => void unban() })
  }
  const unban = async () => {
    await ask("POST /v1/projects/:projectId/environments/:env/players/:playerId/unban", { params })
    refresh()
    notify(own.unbannedDone(player.displayName))
  }
  const download = async () => {
    const data = await ask(
      "POST /v1/projects/:projectId/environments/:env/players/:playerId/export",
      { params }
    )
    saveFile(`${player.id}.json`, JSON.stringify(data, null, 2))
    notify(own.exported)
  }
  const remove = () =>
    ask("POST /v1/projects/:projectId/environments/:env/players/:playerId/delete", { params })
  return { ban, download, remove, unban }
}

const BanDialog = ({
  ban,
  close,
  player
}: {
  readonly player: Detail
  readonly close: () => void
  readonly ban: (reason?: string, note?: string) => Promise<void>
}) => (
  <Dialog title={own.banTitle(player.displayName)} close={close}>
    <p>{own.banText}</p>
    <Form
      submit={own.ban}
      danger
      after={<Cancel close={close} />}
      send={async ({ note, reason }) => {
        await ban(reason, note)
        close()
      }}
    >
      <Field label={own.reason} name="reason" maxLength={500} value={player.banReason ?? ""} />
      <TextField label={own.note} name="note" maxLength={500} />
    </Form>
  </Dialog>
)

export const PlayerActions = ({ player, refresh }: Given) => {
  const { env, project } = useCurrentView()
  const { route } = useLocation()
  const { ban, download, remove, unban } = useChanges({ player, refresh })
  const [open, setOpen] = useState<"ban" | "delete" | undefined>(undefined)
  const { busy, error, run } = useAction((change: () => Promise<void>) => change())
  const close = () => setOpen(undefined)
  return (
    <div class="row">
      {error !== undefined && <Failure error={error} />}
      <Button disabled={busy} onClick={() => run(download)}>
        {own.export}
      </Button>
      {player.banned && (
        <Button disabled={busy} onClick={() => run(unban)}>
          {own.unban}
        </Button>
      )}
      <Button onClick={() => setOpen("ban")}>{player.banned ? own.banRefresh : own.ban}</Button>
      <Button kind="danger" onClick={() => setOpen("delete")}>
        {own.delete}
      </Button>
      {open === "ban" && <BanDialog player={player} close={close} ban={ban} />}
      {open === "delete" && (
        <Confirm
          title={own.deleteTitle(player.displayName)}
          action={own.delete}
          name={player.id}
          close={close}
          run={async () => {
            await remove()
            notify(own.deleted)
            route(addressOf(project, env, "players"))
          }}
        >
          <p>{own.deleteText}</p>
        </Confirm>
      )}
    </div>
  )
}
