# Written by `python tests/stubs.py`, of the table in __init__.py.
from ptaskmodel.campaign.campaign import Campaign as Campaign
from ptaskmodel.campaign.campaign import Estimate as Estimate
from ptaskmodel.campaign.campaign import Status as Status
from ptaskmodel.campaign.campaign import told_campaigns as told_campaigns
from ptaskmodel.campaign.campaign import write_table as write_table
from ptaskmodel.campaign.dask_cluster import Cluster as Cluster
from ptaskmodel.campaign.plan import Plan as Plan
from ptaskmodel.campaign.plan import Run as Run
from ptaskmodel.campaign.plan import plan_of as plan_of
from ptaskmodel.campaign.plan import read_plan as read_plan
from ptaskmodel.campaign.report import write_campaign_report as write_campaign_report
from ptaskmodel.campaign.statistics import means as means
from ptaskmodel.campaign.statistics import paired as paired
from ptaskmodel.campaign.statistics import pareto as pareto
from ptaskmodel.campaign.variance import effects as effects
