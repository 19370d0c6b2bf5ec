/** Plans of bundles as `curlew bundle` makes them, over a store of small packages and a small tool for nodes. */
import { mkdir, writeFile } from 'node:fs/promises';
import { writeBundleFile } from '../../src/ship/bundle/write/write-bundle.ts';
import { planFrom, type OpenPlan, type PlanFromOptions } from '../../src/ship/bundle/plan-from.ts';
import { packedExecutableName } from '../../src/core/layout.ts';
import { parseInstaller } from '../../src/spec/parse.ts';
import { readCatalog } from '../../src/ship/store/read-catalog.ts';
import type { Store } from '../../src/ship/store/store.ts';
import { TOOL } from './bundles.ts';
import { noReport } from './context.ts';
import type { Tree } from './tree.ts';

/** Puts the tool into `node/` of the box, and returns that folder. */
export async function putTool(box: Tree, bytes: Uint8Array = TOOL.bytes): Promise<string> {
  await mkdir(box.at('node'), { recursive: true });
  await writeFile(box.at('node', packedExecutableName('amd64')), bytes);
  return box.at('node');
}

export async function planSpec(
  box: Tree,
  store: Store,
  spec: string,
  options: Partial<PlanFromOptions> & { readonly signal: AbortSignal },
): Promise<OpenPlan> {
  const { installer, document, diagnostics } = parseInstaller('installer.yaml', spec);
  if (installer === undefined || document === undefined) throw new Error(JSON.stringify(diagnostics));
  return planFrom(store, installer, {
    spec: Buffer.from(spec),
    catalog: await readCatalog(store, { release: undefined, signal: options.signal }),
    arch: 'amd64',
    tool: '1.2.3',
    executables: await putTool(box),
    ...options,
  });
}

export async function writePlan({ plan, sources }: OpenPlan, path: string, signal: AbortSignal): Promise<void> {
  await writeBundleFile(plan, sources, path, { force: false, verify: true, report: noReport, signal });
}
