/** A child process of `patrol`: patrols without a pause until it is killed. */
import { patrol } from '../src/fleet/patrol/patrol.ts'
import { makeSandbox } from '../test/helpers/repo.ts'
import { fleetOf, fleetSettings } from './fleet-world.ts'
import { openWorld } from './stage.ts'

const [root = ''] = process.argv.slice(2)
const box = makeSandbox()
const fleet = fleetOf(await openWorld(box, root, { ...fleetSettings, spares: 0 }), box.env)
await patrol(fleet)
process.send?.('ready')
for (;;) await patrol(fleet)
