/** How a hub and its agents are, as metrics of Prometheus: numbers of clusters and add-ons, and no names. Pure. */
import { byLabel, metric } from '../../core/prometheus.ts';
import type { FleetAddonStatus } from '../rollout/fleet.ts';

/** What a process has done since it began. */
export class PassCounts {
  #decided = 0;
  #failed = 0;
  #lastAt: number | undefined;

  /** `now` in seconds since 1970. */
  ended(hasSucceeded: boolean, now: number): void {
    if (!hasSucceeded) this.#failed += 1;
    else {
      this.#decided += 1;
      this.#lastAt = now;
    }
  }

  /** For names that begin so. */
  text(prefix: string): string {
    const passes = [[{ result: 'decided' }, this.#decided] as const, [{ result: 'failed' }, this.#failed] as const];
    return [
      metric('counter', `${prefix}_passes_total`, 'Passes that knew the whole hub, and others.', passes),
      metric('gauge', `${prefix}_last_pass_timestamp_seconds`, 'When the last pass knew the whole hub.', this.#lastAt),
    ].join('');
  }
}

interface Controller {
  readonly passes: PassCounts;
  readonly leads: boolean;
  /** One for each add-on of the hub. */
  readonly statuses: readonly FleetAddonStatus[];
}

export function controllerMetrics({ passes, leads, statuses }: Controller): string {
  const stopped = statuses.filter((one) => one.stopped !== undefined).length;
  const removals = statuses.flatMap(({ removed = [] }) => removed).reduce((sum, { begun }) => sum + begun, 0);
  const [states, reasons] = (['counts', 'reasons'] as const).map((field) =>
    statuses.flatMap((one) => Object.entries(one[field])),
  );
  return [
    metric('gauge', 'curlew_controller_leads', 'Whether this controller leads the hub.', Number(leads)),
    passes.text('curlew_controller'),
    metric('gauge', 'curlew_fleet_targets', 'Add-ons on clusters, by state.', byLabel('state', states ?? [])),
    metric('gauge', 'curlew_fleet_waiting', 'Add-ons on clusters that wait.', byLabel('reason', reasons ?? [])),
    leads ? metric('gauge', 'curlew_fleet_stopped', 'Add-ons whose rollout has stopped.', stopped) : '',
    leads
      ? metric('gauge', 'curlew_fleet_removals', 'Removals that count together without an approval.', removals)
      : '',
  ].join('');
}

interface Agent {
  readonly passes: PassCounts;
  /** The state of each add-on. */
  readonly states: readonly string[];
  readonly jobs: ReadonlyMap<string, number>;
  /** What could not be done apart from jobs, such as a request to the hub. */
  readonly errors: number;
}

export function agentMetrics({ passes, states, jobs, errors }: Agent): string {
  const addons = states.map((state) => [state, 1] as const);
  return [
    passes.text('curlew_agent'),
    metric('gauge', 'curlew_agent_addons', 'Add-ons of this cluster, by state.', byLabel('state', addons)),
    metric('counter', 'curlew_agent_jobs_total', 'Deliveries and removals.', byLabel('result', jobs)),
    metric('counter', 'curlew_agent_errors_total', 'Other failures, such as of requests to the hub.', errors),
  ].join('');
}
