# Reports: tables and figures beside the papers' numbers, runs in MLflow, verdicts on claims, the site, the outcome.
#   in: measurements/      out: tables/, figures/, tracking/, claims/, claims.json, site/, outcome/


rule render:
    input:
        batches,
    output:
        csv=f"{S}/tables/{{experiment}}.csv",
        md=f"{S}/tables/{{experiment}}.md",
        tex=f"{S}/tables/{{experiment}}.tex",
        html=report(
            f"{S}/tables/{{experiment}}.html",
            caption="../workflow/report/result.rst",
            category=source_title,
            labels=shown_as("table"),
        ),
        svg=report(
            f"{S}/figures/{{experiment}}.svg",
            caption="../workflow/report/result.rst",
            category=source_title,
            labels=shown_as("figure"),
        ),
        json=f"{S}/tables/{{experiment}}.json",
    log:
        f"{S}/logs/render/{{experiment}}.log",
    priority: urgency
    resources:
        mem_mb=memory.FLOOR,
    params:
        shown=shown,
        code=code_digest("agglearn.reporting.render"),
        templates=table_digest,
    script:
        "../workflow/scripts/stage.py"


# The experiments of a group are sent together, and one that is asked for alone is sent alone. A store takes each run once.
rule track:
    input:
        batches=tracked_measurements,
        rendered=tracked_tables,
    output:
        update(f"{S}/tracking/{{group}}.json"),
    log:
        f"{S}/logs/track/{{group}}.log",
    priority: urgency
    resources:
        tracking=1,
        mem_mb=memory.FLOOR,
    params:
        uri=config["tracking"]["uri"],
        attempt=sending_attempt,
    script:
        "../workflow/scripts/stage.py"


# Each claim is judged here, once, and pages read the verdicts. `Plan.groups` has what is judged together.
rule judge:
    input:
        claimed,
    output:
        f"{S}/claims/{{group}}.json",
    log:
        f"{S}/logs/judge/{{group}}.log",
    priority: urgency
    resources:
        mem_mb=memory.FLOOR,
    params:
        claims=claims_digest,
        record=record_digest,
        code=code_digest("agglearn.reporting.judging"),
    script:
        "../workflow/scripts/stage.py"


rule collect:
    input:
        verdicts(plan.groups()),
    output:
        f"{S}/claims.json",
    log:
        f"{S}/logs/collect.log",
    params:
        claims=digest(list(config["claims"].items())),
    script:
        "../workflow/scripts/stage.py"


# The site of all sources that are done so far, made when one more is.
rule page:
    input:
        source_results,
        verdicts(["{source}"]),
    output:
        f"{S}/site/{{source}}.html",
    log:
        f"{S}/logs/page/{{source}}.log",
    priority: urgency
    resources:
        mem_mb=memory.FLOOR,
        site=1,
    script:
        "../workflow/scripts/stage.py"


rule site:
    input:
        pages(plan.sources()),
        tables(plan.experiments),
        receipts("all"),
        f"{S}/claims.json",
    output:
        f"{S}/site/index.html",
    log:
        f"{S}/logs/site.log",
    resources:
        mem_mb=memory.FLOOR,
    params:
        shown=everything_shown,
        code=code_digest("agglearn.reporting.site"),
        templates=template_digest,
    script:
        "../workflow/scripts/stage.py"


# It writes the pages of what is made, unless the target has them. A failure leaves no outcome behind: this job fails, and runs
# again with the next call.
rule conclude:
    input:
        belonging,
    output:
        f"{S}/outcome/{{target}}.txt",
    log:
        f"{S}/logs/outcome/{{target}}.log",
    resources:
        site=1,
    params:
        code=code_digest("agglearn.reporting.run_summary"),
    script:
        "../workflow/scripts/stage.py"
