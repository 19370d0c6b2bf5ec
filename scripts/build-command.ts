/**
 * Bundles the command and the library into dist/cli, after the compiler has written declarations into dist.
 * usage: tsx scripts/build-command.ts
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleCommand } from './command/bundle.ts';
import { trimTypes } from './command/types.ts';

const ROOT = join(import.meta.dirname, '..');

await rm(join(ROOT, 'dist/cli'), { recursive: true, force: true });
await bundleCommand(ROOT, join(ROOT, 'dist/cli'));
await trimTypes(ROOT);
