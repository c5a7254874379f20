import { type APIMessage, ButtonStyle, ComponentType } from 'discord.js'
import type { ReplyAction } from '../../domain/message.ts'
import type { ButtonData } from '../button-data.ts'
import type { ButtonRow } from './client.ts'

/** Discord's limit is 100 characters; bytes are never fewer. */
export const MAX_BUTTON_BYTES = 100

/** Discord's limits: five buttons in a row, five rows, 80 characters on a button. */
const PER_ROW = 5
const MOST = 25
const MAX_LABEL = 80

const styles: Record<NonNullable<ReplyAction['style']>, ButtonStyle.Primary | ButtonStyle.Danger> = {
  primary: ButtonStyle.Primary,
  danger: ButtonStyle.Danger,
}

export const buttonRows = async (actions: readonly ReplyAction[], buttons: ButtonData): Promise<ButtonRow[]> => {
  const made = await Promise.all(
    actions.slice(0, MOST).map(async ({ label, command, style }) => ({
      type: ComponentType.Button as const,
      style: style === undefined ? (ButtonStyle.Secondary as const) : styles[style],
      label: label.slice(0, MAX_LABEL).toWellFormed(),
      custom_id: await buttons.dataOf(command),
    })),
  )
  const rows = Map.groupBy(made.entries(), ([at]) => Math.floor(at / PER_ROW))
  return [...rows.values()].map((row) => ({
    type: ComponentType.ActionRow,
    components: row.map(([, button]) => button),
  }))
}

/** A message's buttons once one of them was used: all still there, none can be pressed. */
export const disabledRows = ({ components = [] }: Pick<APIMessage, 'components'>): ButtonRow[] =>
  components.flatMap((row) => {
    if (row.type !== ComponentType.ActionRow) return []
    const buttons = row.components.filter((one) => one.type === ComponentType.Button)
    return [{ type: row.type, components: buttons.map((button) => ({ ...button, disabled: true })) }]
  })
