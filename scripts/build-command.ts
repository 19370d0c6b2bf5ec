/**
 * Bundles the command and the library into dist/cli.
 * usage: tsx scripts/build-command.ts
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleCommand } from './command/bundle.ts';

const ROOT = join(import.meta.dirname, '..');

await rm(join(ROOT, 'dist/cli'), { recursive: true, force: true });
await bundleCommand(ROOT, join(ROOT, 'dist/cli'));
