import { acpExample } from './acp-specs.ts'
import { specs } from './agent-specs.ts'
import { agentSuite } from './agent-suite.ts'

agentSuite([...specs, acpExample])
