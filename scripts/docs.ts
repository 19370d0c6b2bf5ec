/** Writes the pages and parts of pages that are generated from tables in the source. usage: npm run docs */
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { INSTALLER_SCHEMA } from '../src/spec/schema.ts';
import { RUN } from '../src/requests/node.ts';
import { planSchema } from '../src/runtime/run/plan-schema.ts';
import { CHANNEL_SCHEMA } from './docs/channel-schema.ts';
import { CLUSTER_SCHEMA, FLEET_ADDON_SCHEMA } from './docs/fleet-schemas.ts';
import { fleetApiPage } from './docs/fleet-api.ts';
import { withCommands } from './docs/command-tables.ts';
import { errorsPage } from './docs/errors-page.ts';
import { withFolders } from './docs/folders.ts';
import { kurlPage } from './docs/kurl-page.ts';
import { withFunctions } from './docs/library-tables.ts';
import { manifestPage } from './docs/manifest-page.ts';
import { proofPage } from './docs/proof-page.ts';

/** Each takes the current text of its page. */
const PAGES: Readonly<Record<string, (now: string) => string>> = {
  'CONTRIBUTING.md': withFolders,
  'docs/cli.md': withCommands,
  'docs/errors.md': errorsPage,
  'docs/fleet-api.md': fleetApiPage,
  'docs/kurl-compatibility.md': kurlPage,
  'docs/library.md': (now) => withFunctions(now, (path) => readFileSync(`src/${path}`, 'utf8')),
  'docs/manifest.md': manifestPage,
  'docs/proof.md': proofPage,
  'docs/schemas/channel.schema.json': () => `${JSON.stringify(CHANNEL_SCHEMA, undefined, 2)}\n`,
  'docs/schemas/cluster.schema.json': () => `${JSON.stringify(CLUSTER_SCHEMA, undefined, 2)}\n`,
  'docs/schemas/fleet-addon.schema.json': () => `${JSON.stringify(FLEET_ADDON_SCHEMA, undefined, 2)}\n`,
  'docs/schemas/installer.schema.json': () => `${JSON.stringify(INSTALLER_SCHEMA, undefined, 2)}\n`,
  'docs/schemas/plan-1.schema.json': () => `${JSON.stringify(planSchema(RUN.fields), undefined, 2)}\n`,
};

for (const [path, make] of Object.entries(PAGES)) {
  await writeFile(path, make(await readFile(path, 'utf8')));
  console.log(path);
}
