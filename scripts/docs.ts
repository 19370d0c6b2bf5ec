/** Writes the reference pages that are made from the tables in src. usage: npm run docs */
import { writeFile } from 'node:fs/promises';
import { INSTALLER_SCHEMA } from '../src/installer/schema.ts';
import { PLAN_SCHEMA } from '../src/runtime/plan-schema.ts';
import { kurlPage } from './docs/kurl-page.ts';
import { manifestPage } from './docs/manifest-page.ts';

const PAGES = {
  'docs/kurl-compatibility.md': kurlPage,
  'docs/manifest.md': manifestPage,
  'docs/schemas/installer.schema.json': () => `${JSON.stringify(INSTALLER_SCHEMA, undefined, 2)}\n`,
  'docs/schemas/plan-1.schema.json': () => `${JSON.stringify(PLAN_SCHEMA, undefined, 2)}\n`,
};

for (const [path, make] of Object.entries(PAGES)) {
  await writeFile(path, make());
  console.log(path);
}
