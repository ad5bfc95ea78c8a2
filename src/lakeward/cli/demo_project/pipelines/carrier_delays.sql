-- pipeline: carrier_delays
-- sources: {flights: nyc.analytics.flights_enriched}
-- output: nyc.analytics.carrier_delays
-- strategy: replace
-- primary_key: [carrier]
select carrier,
       any_value(airline) as airline,
       count(*) as flights,
       count(*) filter (where cancelled) as cancelled,
       cast(avg(dep_delay) as decimal(9, 2)) as mean_departure_delay,
       cast(avg(arr_delay) as decimal(9, 2)) as mean_arrival_delay,
       count(*) filter (where arr_delay >= 60) as an_hour_late
from flights
group by carrier
